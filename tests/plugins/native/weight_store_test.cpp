// Weights in one piece of memory: adjacent where a product takes them together, at addresses that new values keep; and
// an update that goes there at once because no set is in force.
#include "plugins/native/model/weight_store.hpp"

#include "modeling/op/row/adjacent.hpp"
#include "plugins/native/model/weight_sums.hpp"
#include "tests/plugins/native/support/ranks.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;
using hexad::native::WeightMap;
using hexad::native::WeightStore;

namespace {

hexad::modeling::ModelConfig config_of(const std::string& family, nlohmann::json changes) {
  const hexad::modeling::TemporaryDir dir;
  nlohmann::json config = tiny_config(family);
  config.update(changes);
  hexad::modeling::write_file(dir / "config.json", config.dump());
  return hexad::modeling::load_model_config(dir.path());
}

WeightMap of_bf16(const Weights& weights) {
  WeightMap result;
  for (const auto& [name, weight] : weights) result[name] = weight.to(at::kBFloat16);
  return result;
}

bool equal(const WeightMap& a, const WeightMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && x.second.equal(y.second); });
}

Json section(const TinyModel& model, const std::string& precision = "float32") {
  return {{"model_name", model.path()}, {"precision", precision}, {"native_cfg", {{"kv_cache_gb", 0.001}}}};
}

const Ask kAsk{.id = 1, .prompt = {5, 9, 2, 44}, .max_new_tokens = 10, .seed = 3};

}  // namespace

TEST_CASE("of shapes that the GPU's kernels take, what a product takes together lies side by side") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      // The smallest odd multiples of what runs_on_cuda() asks for.
      const auto config = config_of(family, {{"hidden_size", 8},
                                             {"intermediate_size", 24},
                                             {"num_attention_heads", 3},
                                             {"num_key_value_heads", 1},
                                             {"head_dim", head_dim}});
      WeightStore store(config, at::kBFloat16, at::kCPU);
      const WeightMap& places = store.places();
      for (int64_t layer = 0; layer < config.num_layers; ++layer) {
        const std::string at = "model.layers." + std::to_string(layer) + ".";
        const auto together = [&](const std::vector<std::string>& names) {
          std::vector<at::Tensor> parts;
          for (const std::string& name : names) parts.push_back(places.at(at + name));
          return hexad::modeling::adjacent(parts, 0);
        };
        CHECK(together({"mlp.gate_proj.weight", "mlp.up_proj.weight"}).sizes() == at::IntArrayRef({48, 8}));
        for (const std::string kind : {"weight", "bias"}) {
          if (!places.contains(at + "self_attn.q_proj." + kind)) continue;
          CHECK(
              together({"self_attn.q_proj." + kind, "self_attn.k_proj." + kind, "self_attn.v_proj." + kind}).size(0) ==
              5 * head_dim);
        }
      }
      for (const auto& [name, place] : places) {
        CHECK(reinterpret_cast<uintptr_t>(place.const_data_ptr()) % 16 == 0);
        CHECK(place.is_contiguous());
      }
    }
  }
}

TEST_CASE("new values come to the same addresses, until they are released") {
  const auto config = config_of("qwen3_moe", nlohmann::json::object());
  WeightStore store(config, at::kBFloat16, at::kCPU);
  const Weights first = random_weights(config, 1), second = random_weights(config, 2);
  const WeightMap places = store.places();
  for (const Weights* weights : {&first, &second}) {
    CHECK(equal(store.settle(*weights), of_bf16(*weights)));
    for (const auto& [name, place] : store.places()) CHECK(place.const_data_ptr() == places.at(name).const_data_ptr());
  }
  CHECK(equal(store.settle(store.places()), of_bf16(second)));  // they lie there already
  store.release();
  CHECK(equal(places, of_bf16(second)));  // who still has them may read them
  CHECK(equal(store.settle(places), of_bf16(second)));
  CHECK(store.places().begin()->second.const_data_ptr() != places.begin()->second.const_data_ptr());
}

TEST_CASE("an update that finds no weights in force goes to its place, and needs no second set") {
  const TinyModel model("qwen3_moe");
  Harness generator(section(model));
  const Answer before = generator.run({kAsk}).at(1);
  const Weights other = random_weights(model.config, 8);
  generator->sleep(generator.service(), 2);
  generator->wake(generator.service());
  const auto send_half = [&](const Weights& weights) {
    for (const auto& [name, tensor] : weights)
      if (name < "model.layers.1") generator.send(name, tensor);
  };
  // Breaks off, three ways: none is in force, and requests wait.
  for (const int way : {0, 1, 2}) {
    generator->update_begin(generator.service(), 3);
    send_half(other);
    if (way == 0) generator->update_end(generator.service(), false);
    if (way == 1) refusal(HEXAD_FAILED_PRECONDITION, [&] { generator->update_end(generator.service(), true); });
    if (way == 2) {
      refusal(HEXAD_INVALID_ARGUMENT, [&] { generator.send("model.nrom.weight", at::ones({3})); });
      refusal(HEXAD_FAILED_PRECONDITION, [&] { generator->update_end(generator.service(), true); });
    }
  }
  generator.answers.clear();
  generator.submit({kAsk});
  CHECK(generator.poll(20) == 0);
  CHECK(reported_sums(generator).empty());
  // Asleep in the middle of one: what has come is not lost.
  generator->update_begin(generator.service(), 4);
  send_half(model.weights);
  generator->sleep(generator.service(), 2);
  for (const auto& [name, tensor] : model.weights)
    if (!(name < "model.layers.1")) generator.send(name, tensor);
  generator->update_end(generator.service(), true);
  generator->wake(generator.service());
  CHECK(generator.run().at(1) == before);
}

TEST_CASE("an update beside weights in force leaves them alone until it is complete") {
  const TinyModel model("qwen3_moe");
  Json config = section(model);
  config["native_cfg"]["deterministic"] = true;  // the prompt may come from the cache
  Harness generator(config);
  const Answer before = generator.run({kAsk}).at(1);
  const Weights other = random_weights(model.config, 8);
  for (const bool commit : {false, true}) {
    generator->update_begin(generator.service(), 3);
    for (const auto& [name, tensor] : other) generator.send(name, tensor);
    CHECK(generator.run({kAsk}).at(1) == before);
    generator->update_end(generator.service(), commit);
    CHECK((generator.run({kAsk}).at(1) == before) == !commit);
  }
}

TEST_CASE("checksums are those of the bits and their places") {
  const at::Tensor weight = at::tensor(std::vector<int16_t>{5, 7, -3, 2}).view({2, 2}).view(at::kBFloat16);
  const auto sums =
      hexad::native::weight_sums({{"matrix", weight},
                                  {"columns", weight.view({2, 1, 2})},
                                  {"wide", at::tensor(std::vector<int32_t>{5, 7, -3, 2}).view({2, 2}).view(at::kFloat)},
                                  {"one", at::tensor(std::vector<int16_t>{-1}).view(at::kHalf)}});
  CHECK(sums.at("matrix") == 5 * 1 + 7 * 1000004 - 3 * 2 + 2 * 1000005);
  CHECK(sums.at("columns") == sums.at("matrix"));
  CHECK(sums.at("wide") == sums.at("matrix"));
  CHECK(sums.at("one") == (int64_t{1} << 48) - 1);
}

TEST_CASE("with the layout come the checksums of the weights in force, in every executor's form") {
  for (const auto& [family, precision] : std::vector<std::pair<std::string, std::string>>{
           {"qwen2", "float32"}, {"qwen3", "bfloat16"}, {"llama", "float16"}, {"qwen3_moe", "bfloat16"}}) {
    CAPTURE(family);
    const TinyModel model(family);
    Harness generator(section(model, precision));
    const at::ScalarType dtype = precision == "float32"    ? at::kFloat
                                 : precision == "bfloat16" ? at::kBFloat16
                                                           : at::kHalf;
    const auto sums_of = [&](const Weights& weights) {
      WeightMap rounded;
      for (const auto& [name, weight] : weights) rounded[name] = weight.to(dtype);
      return hexad::native::weight_sums(rounded);
    };
    CHECK(reported_sums(generator) == sums_of(model.weights));
    const Weights other = random_weights(model.config, 8);
    generator.update(other, 2);
    CHECK(reported_sums(generator) == sums_of(other));
    generator->sleep(generator.service(), 2);
    CHECK(reported_sums(generator).empty());
  }
}
