// Weights that arrive: whole, in slices, wrong, late; and weights that are not numbers.
#include <cmath>
#include <thread>

#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/reference.hpp"

using namespace native_test;

namespace {

Json section(const TinyModel& model) {
  return {{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 0.001}}}};
}

const Ask kAsk{.id = 1, .prompt = {5, 9, 2, 44}, .max_new_tokens = 10, .seed = 3};

Gap gap_to(const Answer& answer, const TinyModel& model, const Weights& weights) {
  std::vector<int32_t> tokens = kAsk.prompt;
  tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
  const std::vector<float> want = full_forward(model.config, weights, tokens);
  Gap gap;
  for (size_t t = 0; t < answer.tokens.size(); ++t) gap.add(answer.logprobs[t], want[kAsk.prompt.size() + t]);
  return gap;
}

}  // namespace

TEST_CASE("a generator whose directory has no weights waits for the first update") {
  const TinyModel model("qwen3", /*with_weights=*/false);
  Harness generator(section(model));
  generator.submit({kAsk});
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { generator.poll(20); }) ==
        "requests are waiting, and there are no weights: " + model.path() + " has none, and no update has brought any");
  generator->update_begin(generator.service(), 4);
  CHECK(generator.poll(20) == 0);  // while one arrives it waits
  for (const auto& [name, tensor] : model.weights) generator.send(name, tensor);
  CHECK(generator.poll(20) == 0);
  generator->update_end(generator.service(), true);
  const Answer& answer = generator.run().at(1);
  CHECK(answer.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 4}});
  CHECK(gap_to(answer, model, model.weights).largest < 2e-5);
}

TEST_CASE("a generator whose weights follow does not read its directory's") {
  const TinyModel model("qwen3");
  const Weights other = random_weights(model.config, 23);
  Json config = section(model);
  config["weights_follow"] = true;
  Harness generator(config);
  generator.submit({kAsk});
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { generator.poll(20); }) ==
        "requests are waiting, and there are no weights: " + model.path() +
            " was not to be read, and no update has brought any");
  generator->update_begin(generator.service(), 1);
  for (const auto& [name, tensor] : other) generator.send(name, tensor);
  generator->update_end(generator.service(), true);
  CHECK(gap_to(generator.run().at(1), model, other).largest < 2e-5);
}

TEST_CASE("an update may come in slices, in other dtypes, with the tied head in its train") {
  for (const std::string& family : families()) {
    CAPTURE(family);
    const TinyModel model(family);
    const Weights other = random_weights(model.config, 21);
    Harness generator(section(model));
    generator->update_begin(generator.service(), 1);
    for (const auto& [name, tensor] : other) {
      const int64_t half = tensor.size(0) / 2;
      generator.send(name, tensor.slice(0, half), tensor.sizes().vec(),
                     tensor.dim() == 2 ? std::vector<int64_t>{half, 0} : std::vector<int64_t>{half});
      generator.send(name, tensor.slice(0, 0, half).to(at::kDouble), tensor.sizes().vec());
    }
    if (model.config.tie_word_embeddings) generator.send("lm_head.weight", other.at("model.embed_tokens.weight"));
    generator->update_end(generator.service(), true);
    CHECK(gap_to(generator.run({kAsk}).at(1), model, other).largest < 2e-5);
  }
}

TEST_CASE("the layout names every weight with its shape and dtype") {
  const TinyModel model("qwen2");
  Json config = section(model);
  config["precision"] = "bfloat16";
  Harness generator(config);
  hexad_weight_list list{};
  generator->weight_layout(generator.service(), list);
  REQUIRE(list.count == static_cast<int64_t>(model.weights.size()));
  for (int64_t i = 0; i < list.count; ++i) {
    const hexad_weight_slice& slice = list.slices[i];
    CHECK(model.weights.at(slice.name).sizes() == at::IntArrayRef(slice.shape, slice.ndim));
    CHECK(at::IntArrayRef(slice.global_shape, slice.ndim) == at::IntArrayRef(slice.shape, slice.ndim));
    CHECK(slice.tensor == nullptr);
    CHECK((slice.dtype.code == kDLBfloat && slice.dtype.bits == 16));
  }
}

TEST_CASE("a malformed update is refused by name, and the old weights stay in force") {
  const TinyModel model("llama");
  Harness generator(section(model));
  const Answer before = generator.run({kAsk}).at(1);
  const auto refused = [&](const auto& send) {
    generator->update_begin(generator.service(), 2);
    const std::string text = refusal(HEXAD_INVALID_ARGUMENT, send);
    CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { generator->update_end(generator.service(), true); }) ==
          "the weight update cannot be committed, a bucket of it was refused: " + text);
    return text;
  };
  const at::Tensor norm = at::ones({36}), wide = at::ones({36, 36});
  CHECK(refused([&] { generator.send("model.nrom.weight", norm); }) ==
        "weight update: model.nrom.weight: the model has no such weight");
  CHECK(refused([&] { generator.send("model.norm.weight", at::ones({35})); }) ==
        "weight update: model.norm.weight: shape [35], the model's is [36]");
  CHECK(refused([&] { generator.send("model.norm.weight", wide); }) ==
        "weight update: model.norm.weight: shape [36, 36], the model's is [36]");
  CHECK(refused([&] { generator.send("model.norm.weight", at::ones({20}), {36}, {17}); }) ==
        "weight update: model.norm.weight: a slice of 20 elements from 17 on lies outside of dimension 0 of [36]");
  CHECK(
      refused([&] { generator.send("model.norm.weight", at::ones({36}, at::kInt)); }) ==
      "weight update: model.norm.weight: dtype with code 0 and 32 bits; wanted float32, float16, bfloat16 or float64");
  CHECK(refused([&] {
          generator.send("model.norm.weight", norm);
          generator.send("model.norm.weight", norm);
        }) == "weight update: model.norm.weight: sent more than once");
  CHECK(refused([&] {
          const hexad_weight_slice slice{"model.norm.weight", nullptr, norm.sizes().data(), norm.sizes().data(),
                                         norm.sizes().data(), 1,       {kDLFloat, 32, 1}};
          int64_t zero = 0;
          hexad_weight_slice whole = slice;
          whole.offsets = &zero;
          const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &whole, 1};
          generator->update_bucket(generator.service(), bucket);
        }) == "weight update: model.norm.weight: a slice without data");

  generator->update_begin(generator.service(), 3);
  generator.send("model.norm.weight", norm);
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { generator->update_end(generator.service(), true); }) ==
        "weight update: 28 of 29 weights did not arrive in full: model.embed_tokens.weight, "
        "model.layers.0.input_layernorm.weight, model.layers.0.mlp.down_proj.weight, "
        "model.layers.0.mlp.gate_proj.weight, model.layers.0.mlp.up_proj.weight, ...");
  generator->update_begin(generator.service(), 3);
  generator.send("model.norm.weight", norm);
  generator->update_end(generator.service(), false);  // given up
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { generator.send("model.norm.weight", norm); }) ==
        "update_bucket without update_begin");
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { generator->update_end(generator.service(), true); }) ==
        "update_end without update_begin");
  CHECK(generator.run({kAsk}).at(1) == before);
}

// With experts new weights go straight to the place of the old ones; other models bring memory of their own.
TEST_CASE("where an update breaks off that began without weights nothing is drawn until a complete one came") {
  for (const std::string family : {"llama", "qwen3_moe"}) {
    CAPTURE(family);
    const TinyModel model(family);
    const Weights other = random_weights(model.config, 21);
    Harness generator(section(model));
    const Answer before = generator.run({kAsk}).at(1);
    generator->sleep(generator.service(), 2);
    generator->wake(generator.service());
    generator.answers.clear();
    generator.submit({kAsk});
    for (const std::string trouble : {"missing", "shape", "called off"}) {
      CAPTURE(trouble);
      generator->update_begin(generator.service(), 5);
      const std::string last = other.rbegin()->first;
      for (const auto& [name, tensor] : other)
        if (name != last) generator.send(name, tensor);
      if (trouble == "shape") refusal(HEXAD_INVALID_ARGUMENT, [&] { generator.send(last, at::ones({1})); });
      if (trouble == "called off") {
        generator->update_end(generator.service(), false);
      } else {
        refusal(HEXAD_FAILED_PRECONDITION, [&] { generator->update_end(generator.service(), true); });
      }
      CHECK(generator.poll(20) == 0);
      hexad_weight_list list{};
      int sums = 0;
      generator.context().metric = [&](const hexad::plugin::Metric&) { ++sums; };
      generator->weight_layout(generator.service(), list);
      CHECK(sums == 0);  // none in force
      generator.context().metric = nullptr;
    }
    generator.update(model.weights, 6);
    const Answer after = generator.run().at(1);
    CHECK(after == before);
    CHECK(after.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 6}});
  }
}

TEST_CASE("weights that are not finite end the samples that meet them, and good ones mend it") {
  const TinyModel model("llama");
  Harness generator(section(model));
  const Answer good = generator.run({kAsk}).at(1);
  Weights broken = model.weights;
  broken["model.layers.1.mlp.up_proj.weight"] = at::full_like(broken["model.layers.1.mlp.up_proj.weight"], NAN);
  generator.update(broken, 12);
  const Answer answer = generator.run({kAsk}).at(1);
  CHECK(answer.finish == HEXAD_FINISH_ERROR);
  CHECK(answer.error == "the logits at position 4 are not finite: nan or inf in the weights (version 12)");
  CHECK(answer.tokens.empty());
  generator.update(model.weights, 13);
  const Answer mended = generator.run({kAsk}).at(1);
  CHECK(mended == good);
  CHECK(mended.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 13}});
}
