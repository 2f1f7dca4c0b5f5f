// Precision fp8 among ranks that share a model, as far as a CPU goes: what each keeps, its checksums, and what the
// casts of parts cost.
#include "plugins/native/model/weight_sums.hpp"
#include "plugins/native/parallel/replica.hpp"
#include "tests/plugins/native/support/fp8_forward.hpp"
#include "tests/plugins/native/support/fp8_kept.hpp"
#include "tests/plugins/native/support/ranks.hpp"
#include "tests/plugins/native/support/reference.hpp"

using namespace native_test;
using namespace hexad::native;

namespace {

nlohmann::json wide_sizes() {
  return {{"hidden_size", 256},       {"intermediate_size", 512}, {"head_dim", 64},
          {"num_attention_heads", 8}, {"num_key_value_heads", 2}, {"vocab_size", 997}};
}

WeightMap arrived(const TinyModel& model, const Shard& shard) {
  WeightUpdate update(model.config, at::kBFloat16, at::kCPU, {}, /*fp8=*/true, shard);
  for (const auto& [name, weight] : model.weights) {
    std::vector<int64_t> shape = weight.sizes().vec(), offsets(shape.size(), 0);
    DLTensor view{weight.data_ptr(), {kDLCPU, 0}, int32_t(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
    const hexad_weight_slice slice{name.c_str(), &view,     shape.data(), offsets.data(),
                                   shape.data(), view.ndim, view.dtype};
    update.add(hexad_weight_list{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1});
  }
  return update.finish();
}

// With four ranks each key/value head is held by two.
void fp8_sums(const Rank& rank) {
  become(rank);
  for (const std::string family : {"llama", "qwen2"}) {
    CAPTURE(family);
    const TinyModel model(family, true, wide_sizes());
    Harness generator({{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 0.001}}}});
    const Replica replica = make_replica(generator.service(), rank.world);
    const WeightMap own = arrived(model, replica.shard());
    const auto sums = weight_sums(own, weight_parts(model.config, replica.shard()), replica);
    CHECK(sums == weight_sums(kept_by(rank.world, model.weights)));
    const auto of_one = weight_sums(arrived(model, {}));
    CHECK(of_one == weight_sums(kept_by(1, model.weights)));
    REQUIRE(sums.size() == of_one.size());
    for (const auto& [name, sum] : of_one) {
      CAPTURE(name);
      CHECK((sums.at(name) == sum) == !is_cut_by_columns(name));
    }
    // What a rank keeps lies as near to what it was cast from as what one rank keeps.
    const std::string name = "model.layers.1.mlp.down_proj.weight";
    const at::Tensor whole = model.weights.at(name).to(at::kBFloat16).to(at::kFloat);
    const at::Tensor part = whole.chunk(rank.world, 1)[rank.rank],
                     alone = from_fp8_rows(cast_in_fp8(whole)).chunk(rank.world, 1)[rank.rank];
    const at::Tensor back = from_fp8_rows({own.at(name), own.at(scales_name(name))});
    CHECK((back - part).norm().item<double>() < 1.05 * (alone - part).norm().item<double>());
  }
}

const bool added = backend_test::add_scenarios({{"fp8_sums", fp8_sums}});

}  // namespace

TEST_CASE("checksums in FP8 are every rank's together: one rank's, but where columns are cut and cast part by part") {
  for (const int ranks : {2, 4}) rank_process::run("fp8_sums", ranks);
}

TEST_CASE("in FP8 ranks that cast their own parts are about as near to exact weights as one rank, and nearer to it") {
  for (const std::string& family : families()) {
    CAPTURE(family);
    nlohmann::json sizes = wide_sizes();
    if (family == "mistral") sizes["sliding_window"] = nullptr;
    const TinyModel model(family, false, sizes);
    Weights weights;
    for (const auto& [name, weight] : model.weights)
      weights[name] = (weight.dim() == 2 ? weight * 0.2 : weight).to(at::kBFloat16).to(at::kFloat);
    const auto lookup = [&](const std::string& name) { return weights.at(name); };
    const std::vector<int32_t> tokens = random_prompt(4, 200, 997);
    const auto error = [](const std::vector<float>& a, const std::vector<float>& b) {
      Gap gap;
      for (size_t i = 1; i < a.size(); ++i) gap.add(a[i], b[i]);
      return gap.mult_prob_error() - 1;
    };
    const std::vector<float> plain = full_forward(model.config, weights, tokens);
    for (const int64_t casts : {int64_t{0}, int64_t{1} << 40}) {
      const auto logprobs = [&](int64_t ranks) {
        return Fp8Forward{model.config, lookup, casts, /*rounds=*/false, /*fp8_cache=*/false, ranks}.logprobs(tokens,
                                                                                                              at::kCPU);
      };
      const std::vector<float> one = logprobs(1);
      for (const int64_t ranks : {2, 4}) {
        const std::vector<float> many = logprobs(ranks);
        MESSAGE(family, std::string(casts ? ", all casts, " : ", weights alone, "), ranks, " ranks: error ",
                error(many, plain), ", of one rank ", error(one, plain), ", between them ", error(many, one));
        CHECK(error(many, one) > 0);
        CHECK(error(many, one) < error(one, plain));
        CHECK(error(many, plain) < 1.3 * error(one, plain));
      }
    }
  }
}
