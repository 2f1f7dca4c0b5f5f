// Rules about generators: messages, and a valid neighbour of each.
#include "tests/config/megatron_support.hpp"

using namespace config_test;

TEST_CASE("rollouts in FP8 need the correction for samples of another policy") {
  const std::string fp8 = "/policy.generation.native_cfg.precision=fp8";
  check_rules(kDense,
              {{{fp8},
                "policy.generation.native_cfg.precision: 'fp8' needs loss_fn.use_importance_sampling_correction: true; "
                "nearest: bfloat16",
                {fp8, "/loss_fn.use_importance_sampling_correction=true"}},
               {{"/policy.generation.native_cfg.precision=fp4"},
                "policy.generation.native_cfg.precision: got 'fp4', wanted",
                {"/policy.generation.native_cfg.precision=float32"}},
               {{fp8}, "'fp8' needs", {fp8, "/policy.generation.backend=vllm"}}});
}

TEST_CASE("the native generator's precision is the policy's unless it is said") {
  const MegatronFiles files(kDense);
  const auto precision = [&](const Overrides& overrides) {
    return files.resolve(overrides).root.as_string("policy.generation.native_cfg.precision");
  };
  CHECK(precision({"/policy.precision=float32"}) == "float32");
  CHECK(precision({"/policy.precision=bfloat16", "/policy.generation.native_cfg.precision=float16"}) == "float16");
}
