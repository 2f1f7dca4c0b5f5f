// FP8 linears under tensor, pipeline and data parallelism.
#include "tests/plugins/backend/fp8.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

auto with(const json& sizes) {
  return [sizes](const std::filesystem::path& dir, const std::string& precision, const json& fp8) {
    json keys = sizes;
    keys["fp8_cfg"] = fp8;
    return megatron_policy(dir, keys, precision);
  };
}

const json kFp32Gradients = {{"distributed_data_parallel_config", {{"grad_reduce_in_fp32", true}}}};

void trains(const Rank& rank) {
  start_runtime(rank);
  for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_trains(with(kFp32Gradients), recipe);
  if (rank.world == 2) {
    json sizes = {{"tensor_model_parallel_size", 2}, {"sequence_parallel", true}};
    check_fp8_trains(with(sizes));  // gradients in the parameters' type
    sizes.update(kFp32Gradients);
    for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_trains(with(sizes), recipe);
    check_fp8_trains(with({{"tensor_model_parallel_size", 2}}));
  }
  runtime_test::runtime().stop();
}

void recomputes(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_fp8_model(dir.path());
  Weights want;
  for (const json& recompute : {json::object(), json{{"activation_checkpointing", true}},
                                json{{"activation_checkpointing", true},
                                     {"recompute_granularity", "selective"},
                                     {"recompute_modules", {"core_attn", "mlp", "layernorm"}}}}) {
    json sizes = kFp32Gradients;
    sizes.update(recompute);
    Instance backend(with(sizes)(dir.path(), "bfloat16", fp8_keys("hybrid")));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    auto batches = backend.batches(make_sequences(9, 5), {2, false, false});
    backend.train(batches, kFp8Normalizer, kFp8Temperature);
    const Weights got = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
    if (!want.empty()) CHECK(relative_error(got, want) <= 1e-6);
    want = got;
  }
  runtime_test::runtime().stop();
}

// Routed experts too, on one rank and over two. Routers see what FP8 has changed, so some tokens go elsewhere.
//
// An estimate of the gradients' error. Four blocks have 32 products, each off by 0.037 (fp8_bound): 0.037 * sqrt(32) =
// 0.21. The router of block l, 1 to 3, has 4 l + 2 products before it: its logits are off by e = 0.037 * sqrt(4 l + 2)
// of their spread s. A token goes elsewhere where the second and third of four logits change places. The density of
// their distance at 0 is 24 / s * integral f^2 F (1 - F) = 1.33 / s for normal logits: 1.33 * 0.8 * sqrt(2) / 2 * e =
// 0.75 e of the tokens, 0.26 in three blocks. With router weights of 0.35 and 0.65, which are assumed, such a token's
// output is off by 2 * 0.35^2 / (0.35^2 + 0.65^2) = 0.45 of its square: sqrt(0.21^2 + 0.45 * 0.26) = 0.40. With equal
// weights it were 0.55.
void trains_experts(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_fp8_model(dir.path(), fp8_expert_model());
  const auto policy = [&](const json& fp8) {
    json sizes = kFp32Gradients;
    if (rank.world == 2) sizes.update({{"expert_model_parallel_size", 2}, {"moe_token_dispatcher_type", "alltoall"}});
    return with(sizes)(dir.path(), "bfloat16", fp8);
  };
  const auto gradients = [&](const json& fp8) {
    Instance backend(policy(fp8));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    auto batches = backend.batches(make_sequences(12, 5), {2, false, false});
    backend.train(batches, kFp8Normalizer, kFp8Temperature);
    return backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  };
  const json off = {{"enabled", false}};
  const Weights plain = gradients(off);
  for (const char* recipe : {"tensorwise", "blockwise"}) {
    CAPTURE(recipe);
    Weights difference = gradients(fp8_keys("e4m3", recipe));
    for (auto& [name, grad] : difference) grad = grad.to(at::kDouble) - plain.at(name).to(at::kDouble);
    const double error = norm_of(difference) / norm_of(plain);
    CHECK(error <= 0.4);
    CHECK(error >= 0.02);
  }
  const std::vector<double> fp8 = losses(policy(fp8_keys("hybrid")), 12, 1e-2), bf16 = losses(policy(off), 12, 1e-2);
  INFO("bf16 from " << bf16.front() << " to " << bf16.back() << ", fp8 to " << fp8.back());
  if (bf16.front() != 0) CHECK(std::abs(fp8.back() - bf16.back()) <= 0.1 * (bf16.front() - bf16.back()));
  runtime_test::runtime().stop();
}

const bool registered =
    add_scenarios({{"fp8_trains", trains}, {"fp8_recomputes", recomputes}, {"fp8_trains_experts", trains_experts}});

}  // namespace

TEST_CASE("FP8 trains near bf16 and fp32 on one and two ranks") {
  for (int world : {1, 2}) rank_process::run("fp8_trains", world);
}

TEST_CASE("FP8 trains models with experts near bf16, on one and two ranks") {
  for (int world : {1, 2}) rank_process::run("fp8_trains_experts", world);
}

TEST_CASE("FP8 gradients do not depend on what is recomputed") { rank_process::run("fp8_recomputes", 1); }

TEST_CASE("FP8 log-probs repeat, and gradients that are not finite skip the step") {
  one_rank();
  for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_passes(with(kFp32Gradients), recipe);
}

TEST_CASE("each FP8 recipe has log-probs of its own") {
  one_rank();
  check_fp8_recipes(with(kFp32Gradients));
}

TEST_CASE("FP8 keys that are wrong or not available are refused") {
  one_rank();
  check_fp8_errors(with(kFp32Gradients), "megatron_cfg");
}
