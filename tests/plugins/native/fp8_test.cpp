// Precision fp8 as far as a CPU goes: the cast, how weights are kept and arrive in it, and who refuses it.
#include <cmath>

#include "modeling/op/row/adjacent.hpp"
#include "plugins/native/model/weight_store.hpp"
#include "plugins/native/model/weight_sums.hpp"
#include "tests/plugins/native/support/fp8_forward.hpp"
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/reference.hpp"

using namespace native_test;
using namespace hexad::native;

namespace {

Fp8Rows cast(const at::Tensor& x) {
  const Fp8Rows rows = empty_fp8_rows(x.size(0), x.size(1), x.device());
  to_fp8_rows(x, rows);
  return rows;
}

at::Tensor bytes(const at::Tensor& x) { return x.view(at::kByte); }

// Sizes in multiples of 64, as precision fp8 wants them.
nlohmann::json even_config(const std::string& family) {
  nlohmann::json config = tiny_config(family);
  config.update({{"hidden_size", 64}, {"intermediate_size", 192}, {"head_dim", 64}, {"num_attention_heads", 3}});
  config["num_key_value_heads"] = 1;
  config.erase("sliding_window");
  return config;
}

hexad::modeling::ModelConfig config_of(const nlohmann::json& json) {
  const hexad::modeling::TemporaryDir dir;
  hexad::modeling::write_file(dir / "config.json", json.dump());
  return hexad::modeling::load_model_config(dir.path());
}

Weights in_bf16(const Weights& weights) {
  Weights result;
  for (const auto& [name, weight] : weights) result[name] = weight.to(at::kBFloat16);
  return result;
}

// What is kept of a complete set.
WeightMap kept(const Weights& weights) {
  WeightMap result;
  for (const auto& [name, weight] : in_bf16(weights)) {
    const bool matrix = is_fp8_weight(name, weight.sizes());
    const Fp8Rows rows = matrix ? cast(weight) : Fp8Rows{weight, {}};
    result[name] = rows.values;
    if (matrix) result[scales_name(name)] = rows.scales;
  }
  return result;
}

bool same_bits(const WeightMap& a, const WeightMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.scalar_type() == y.second.scalar_type() &&
           bytes(x.second.contiguous()).equal(bytes(y.second.contiguous()));
  });
}

void send(WeightUpdate& update, const std::string& name, const at::Tensor& whole, int64_t begin, int64_t end) {
  const at::Tensor data = whole.slice(0, begin, end).contiguous();
  std::vector<int64_t> shape = data.sizes().vec(), offsets(shape.size(), 0);
  const std::vector<int64_t> global = whole.sizes().vec();
  offsets[0] = begin;
  DLTensor view{data.data_ptr(), {kDLCPU, 0}, int32_t(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
  const hexad_weight_slice slice{name.c_str(), &view,     global.data(), offsets.data(),
                                 shape.data(), view.ndim, view.dtype};
  update.add(hexad_weight_list{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1});
}

void send_halves(WeightUpdate& update, const Weights& weights) {
  for (const bool second : {true, false}) {
    for (const auto& [name, weight] : weights) {
      const int64_t half = weight.size(0) / 2;
      send(update, name, weight, second ? half : 0, second ? weight.size(0) : half);
    }
  }
}

}  // namespace

TEST_CASE("rows in FP8 have scales of their own, and lie within half a step of what they were cast from") {
  const at::Tensor x =
      at::randn({9, 64}) * at::tensor(std::vector<float>{1, 1e-6, 1e4, 1, 1, 1e-39, 1, 1, 1}).view({9, 1});
  x[3].zero_();
  x[6][5] = INFINITY, x[7][5] = NAN;
  const Fp8Rows rows = cast(x);
  const at::Tensor back = from_fp8_rows(rows);
  CHECK((rows.values.scalar_type() == at::kFloat8_e4m3fn));
  for (const int64_t row : {0, 1, 2, 4, 8}) {
    CAPTURE(row);
    const double largest = x[row].abs().max().item<double>();
    CHECK(rows.scales[row].item<double>() == doctest::Approx(largest / 448));
    // Three bits behind the first; below 2^-6 of the type steps of 2^-9.
    const at::Tensor step = x[row].abs() / 16 + rows.scales[row] / 1024 + 1e-7 * largest;
    CHECK(((back[row] - x[row]).abs() <= step).all().item<bool>());
    CHECK(back[row].abs().max().item<double>() == doctest::Approx(largest));
  }
  CHECK(rows.scales[3].item<float>() == 1);
  CHECK(back[3].abs().max().item<float>() == 0);
  CHECK(back[5].abs().max().item<double>() == doctest::Approx(x[5].abs().max().item<double>()).epsilon(0.1));
  for (const int64_t row : {6, 7}) CHECK(back[row].isnan().any().item<bool>());
  const Fp8Rows alone = cast(x.slice(0, 4, 5));
  CHECK(bytes(alone.values).equal(bytes(rows.values.slice(0, 4, 5))));
  CHECK(alone.scales.equal(rows.scales.slice(0, 4, 5)));
}

TEST_CASE("matrices of layers are kept in FP8, side by side as their scales, and all else as it is") {
  for (const std::string& family : families()) {
    CAPTURE(family);
    const auto config = config_of(even_config(family));
    WeightStore store(config, at::kBFloat16, at::kCPU, /*fp8=*/true);
    const Weights first = random_weights(config, 1), second = random_weights(config, 2);
    const WeightMap places = store.places();
    int64_t matrices = 0;
    for (const auto& [name, place] : places) {
      const bool matrix = name.starts_with("model.layers.") && name.ends_with("_proj.weight");
      matrices += matrix;
      const at::ScalarType type = matrix ? at::kFloat8_e4m3fn : name.ends_with("_scale") ? at::kFloat : at::kBFloat16;
      CHECK((place.scalar_type() == type));
      CHECK(reinterpret_cast<uintptr_t>(place.const_data_ptr()) % 16 == 0);
    }
    CHECK(matrices == 7 * config.num_layers);
    for (const std::string kind : {"weight", "weight_scale"}) {
      const std::string at = "model.layers.1.";
      const auto together = [&](const std::vector<std::string>& names) {
        std::vector<at::Tensor> parts;
        for (const std::string& name : names) parts.push_back(places.at(at + name + "_proj." + kind));
        return hexad::modeling::adjacent(parts, 0);
      };
      CHECK(together({"self_attn.q", "self_attn.k", "self_attn.v"}).size(0) == 5 * 64);
      CHECK(together({"mlp.gate", "mlp.up"}).size(0) == 2 * 192);
    }
    // From bf16, from what is cast already, and what lies there.
    CHECK(same_bits(store.settle(in_bf16(first)), kept(first)));
    CHECK(same_bits(store.settle(kept(second)), kept(second)));
    CHECK(same_bits(store.settle(store.places()), kept(second)));
    for (const auto& [name, place] : store.places()) CHECK(place.const_data_ptr() == places.at(name).const_data_ptr());
    WeightMap torn = kept(first);
    torn.erase("model.layers.0.mlp.up_proj.weight_scale");
    CHECK_THROWS(store.settle(torn));
  }
}

TEST_CASE("an update in FP8 casts a matrix when its last slice is there, at its place or beside") {
  const auto config = config_of(even_config("qwen2"));
  const Weights weights = random_weights(config, 5);
  for (const bool at_place : {false, true}) {
    CAPTURE(at_place);
    WeightStore store(config, at::kBFloat16, at::kCPU, /*fp8=*/true);
    for (const bool whole : {false, true}) {
      WeightUpdate update(config, at::kBFloat16, at::kCPU, at_place ? store.places() : WeightMap(), /*fp8=*/true);
      if (whole) {
        for (const auto& [name, weight] : weights) send(update, name, weight, 0, weight.size(0));
      } else {
        send_halves(update, weights);
      }
      const WeightMap arrived = update.finish();
      CHECK(same_bits(arrived, kept(weights)));
      const std::string name = "model.layers.0.mlp.down_proj.weight";
      CHECK((arrived.at(name).const_data_ptr() == store.places().at(name).const_data_ptr()) == at_place);
      CHECK(same_bits(store.settle(arrived), kept(weights)));
    }
  }
  WeightUpdate update(config, at::kBFloat16, at::kCPU, {}, /*fp8=*/true);
  for (const auto& [name, weight] : weights) {
    const bool half = name == "model.layers.1.mlp.up_proj.weight";
    send(update, name, weight, 0, weight.size(0) / (half ? 2 : 1));
    if (!half) refusal(HEXAD_INVALID_ARGUMENT, [&] { send(update, name, weight, 0, 1); });  // more than there is
  }
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { update.finish(); }).find("model.layers.1.mlp.up_proj.weight") !=
        std::string::npos);
}

TEST_CASE("weights on disk are read into places in FP8") {
  const hexad::modeling::TemporaryDir dir;
  hexad::modeling::write_file(dir / "config.json", even_config("qwen3").dump());
  const auto config = hexad::modeling::load_model_config(dir.path());
  const Weights weights = random_weights(config, 9);
  std::vector<hexad::modeling::TensorSpec> specs;
  for (const auto& [name, tensor] : weights) specs.push_back({name, tensor.sizes().vec(), at::kFloat});
  hexad::modeling::SafetensorsWriter writer(dir.path(), specs);
  for (const auto& [name, tensor] : weights) writer.write(name, tensor);
  writer.finish();
  WeightStore store(config, at::kBFloat16, at::kCPU, /*fp8=*/true);
  CHECK(same_bits(load_weights(dir.path(), config, at::kBFloat16, at::kCPU, store.places()), kept(weights)));
}

TEST_CASE("checksums in FP8 are those of the cast and of its scales, and the trainer's for all else") {
  const auto config = config_of(even_config("llama"));
  const Weights weights = random_weights(config, 3);
  WeightStore store(config, at::kBFloat16, at::kCPU, /*fp8=*/true);
  const auto sums = weight_sums(store.settle(in_bf16(weights))), trainers = weight_sums(in_bf16(weights));
  CHECK(sums == weight_sums(kept(weights)));
  for (const auto& [name, sum] : trainers)
    CHECK((sums.at(name) == sum) == !is_fp8_weight(name, weights.at(name).sizes()));
  CHECK(sums.contains("model.layers.2.mlp.down_proj.weight_scale"));
  // The sum of signed bytes: 1, -1.
  const at::Tensor two = at::tensor(std::vector<int8_t>{1, -1}).view({1, 2}).view(at::kFloat8_e4m3fn);
  CHECK(weight_sums({{"two", two}}).at("two") == (int64_t{1} << 48) - 1000003);
}

TEST_CASE("precision fp8 is refused where no executor has it, and precisions that are none by their names") {
  const TinyModel model("qwen2");
  const auto refused = [&](const Json& native) {
    return refusal(HEXAD_INVALID_ARGUMENT, [&] {
      Harness generator({{"model_name", model.path()}, {"native_cfg", native}});
    });
  };
  CHECK(
      refused({{"precision", "fp8"}}) ==
      "native_cfg.precision: got 'fp8', wanted float32, bfloat16 or float16 for model_type 'qwen2' on cpu: FP8 runs on "
      "an NVIDIA GPU of compute capability 9.0, in a build with CUDA, for dense models of head_dim 64 or 128 with "
      "hidden_size and intermediate_size in multiples of 64, without biases but those of q, k and v and without a "
      "sliding window; not with native_cfg.deterministic");
  CHECK(refused({{"precision", "fp4"}}) == "native_cfg.precision: got 'fp4', wanted float32, bfloat16, float16 or fp8");
}

TEST_CASE("native_cfg.precision comes before policy.generation.precision") {
  const TinyModel model("qwen3");
  Harness generator({{"model_name", model.path()},
                     {"precision", "float32"},
                     {"native_cfg", {{"precision", "bfloat16"}, {"kv_cache_gb", 0.001}}}});
  hexad_weight_list list{};
  generator->weight_layout(generator.service(), list);
  REQUIRE(list.count > 0);
  CHECK((list.slices[0].dtype.code == kDLBfloat && list.slices[0].dtype.bits == 16));
}

TEST_CASE("the forward pass that FP8 is measured against is the usual one, but for the casts") {
  for (const std::string& family : families()) {
    CAPTURE(family);
    nlohmann::json json = even_config(family);
    json.update({{"hidden_size", 256}, {"intermediate_size", 384}, {"num_attention_heads", 6}, {"vocab_size", 997}});
    json["num_key_value_heads"] = 2;
    const auto config = config_of(json);
    Weights weights, narrow;
    for (const auto& [name, weight] : random_weights(config, 7)) {
      weights[name] = (weight.dim() == 2 ? weight * 0.2 : weight).to(at::kBFloat16).to(at::kFloat);
      narrow[name] = is_fp8_weight(name, weight.sizes()) ? through_fp8(weights[name]) : weights[name];
    }
    const std::vector<int32_t> tokens = random_prompt(4, 120, 997);
    const auto lookup = [&](const std::string& name) { return weights.at(name); };
    const auto gap = [](const std::vector<float>& a, const std::vector<float>& b) {
      Gap result;
      for (size_t i = 1; i < a.size(); ++i) result.add(a[i], b[i]);
      return result;
    };
    const std::vector<float> plain = full_forward(config, weights, tokens);
    const std::vector<float> weights_only = Fp8Forward{config, lookup, 0}.logprobs(tokens, at::kCPU);
    const std::vector<float> all = Fp8Forward{config, lookup}.logprobs(tokens, at::kCPU);
    const std::vector<float> rounded = Fp8Forward{config, lookup, 1 << 20, true}.logprobs(tokens, at::kCPU);
    const std::vector<float> rounded_weights = Fp8Forward{config, lookup, 0, true}.logprobs(tokens, at::kCPU);
    CHECK(gap(weights_only, full_forward(config, narrow, tokens)).largest < 1e-4);
    const auto error = [&](const auto& a, const auto& b) { return gap(a, b).mult_prob_error() - 1; };
    MESSAGE(family, ": all casts to none ", error(all, plain), ", weights alone ", error(weights_only, plain),
            "; rounding to bf16 adds ", error(all, rounded), " and ", error(weights_only, rounded_weights));
    CHECK(error(weights_only, plain) > 0.003);
    CHECK(error(all, plain) > 1.1 * error(weights_only, plain));
    CHECK(error(all, rounded) < 0.75 * error(all, plain));
    CHECK(error(weights_only, rounded_weights) < 0.01);
    // As many rows as are said, from the first on.
    const std::vector<float> some = Fp8Forward{config, lookup, 60}.logprobs(tokens, at::kCPU);
    for (size_t i = 1; i <= 60; ++i) CHECK(std::abs(some[i] - all[i]) < 1e-4);
    CHECK(std::abs(some[100] - all[100]) > 1e-4);
  }
}
