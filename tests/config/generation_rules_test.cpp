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
  const std::string cache = "/policy.generation.native_cfg.kv_cache_dtype=";
  check_rules(
      kDense,
      {{{cache + "fp8_e4m3"},
        "policy.generation.native_cfg.kv_cache_dtype: 'fp8_e4m3' needs "
        "loss_fn.use_importance_sampling_correction: true; nearest: auto",
        {cache + "fp8_e4m3", "/loss_fn.use_importance_sampling_correction=true"}},
       {{cache + "fp8_e5m2"}, "policy.generation.native_cfg.kv_cache_dtype: got 'fp8_e5m2', wanted", {cache + "auto"}},
       {{cache + "fp8"}, "'fp8' needs", {cache + "fp8", "/policy.generation.backend=vllm"}}});
}

TEST_CASE("the native generator's precision is the policy's unless it is said") {
  const MegatronFiles files(kDense);
  const auto precision = [&](const Overrides& overrides) {
    return files.resolve(overrides).root.as_string("policy.generation.native_cfg.precision");
  };
  CHECK(precision({"/policy.precision=float32"}) == "float32");
  CHECK(precision({"/policy.precision=bfloat16", "/policy.generation.native_cfg.precision=float16"}) == "float16");
}

TEST_CASE("replicas of the native generator fit the ranks") {
  const std::string ranks = "/policy.generation.native_cfg.tensor_parallel_size=";
  check_rules(kDense,
              {{{ranks + "3"},
                "policy.generation.native_cfg.tensor_parallel_size: tensor_parallel_size 3 does not divide the 8 "
                "ranks of a node; nearest: 2 or 4",
                {ranks + "4"}}});
}

TEST_CASE("replicas of the native generator fit the model") {
  const std::string ranks = "/policy.generation.native_cfg.tensor_parallel_size=";
  const std::string heads = R"({"model_type": "qwen3", "num_attention_heads": 12, "num_key_value_heads": 3,
                                "num_hidden_layers": 8, "intermediate_size": 102})";
  check_rules(heads,
              {{{ranks + "8"}, "tensor_parallel_size 8 does not divide num_attention_heads 12", {ranks + "1"}},
               {{ranks + "4"}, "tensor_parallel_size 4 does not divide intermediate_size 102", {ranks + "1"}},
               {{ranks + "2"},
                "num_key_value_heads 3 is neither a multiple nor a divisor of tensor_parallel_size 2; nearest: 1",
                {ranks + "1"}}});
  check_rules(
      kExperts,
      {{{ranks + "2"}, "2 needs a dense model without multi-head latent attention; nearest: 1", {ranks + "1"}}});
}

TEST_CASE("weights go to vLLM by disk, ipc or nccl, and to native by no such way") {
  const std::string transport = "/policy.generation.refit_transport=", vllm = "/policy.generation.backend=vllm";
  check_rules(kDense, {{{transport + "ipc"},
                        "policy.generation.refit_transport: got ipc, which is a way to vLLM's servers, and "
                        "policy.generation.backend is native; nearest: null",
                        {transport + "ipc", vllm}},
                       {{transport + "nixl", vllm}, "another weight transport", {transport + "nccl", vllm}}});
}

TEST_CASE("what shapes rollouts alone is named") {
  const std::string at = "policy.generation.";
  const auto told = [&](const Overrides& overrides, const std::string& key, const std::string& words) {
    return has_notice(resolve_text(overrides), at + key, words);
  };
  const std::string min_p = "++policy.generation.min_p=", alone = "training's log-probs are without it";
  CHECK(told({min_p + "0.1"}, "min_p", alone));
  CHECK_FALSE(told({min_p + "0"}, "min_p", alone));
  CHECK_FALSE(told({"++policy.generation.top_p=0.9", "++policy.generation.top_k=5"}, "min_p", alone));
  const std::string vllm = "++policy.generation.backend=vllm",
                    kwargs = "++policy.generation.vllm_kwargs=", processors = "training's log-probs are without them";
  CHECK(told({vllm, kwargs + "{logits_processors: [mine]}"}, "vllm_kwargs", processors));
  CHECK_FALSE(told({vllm, kwargs + "{seed: 3}"}, "vllm_kwargs", processors));
  CHECK_FALSE(told({vllm}, "vllm_kwargs", processors));
  const std::string temperature = "++policy.generation.temperature=", cold = "vLLM draws at 0.01 then";
  CHECK(told({vllm, temperature + "0.005"}, "temperature", cold));
  CHECK_FALSE(told({vllm, temperature + "0.01"}, "temperature", cold));
  CHECK_FALSE(told({temperature + "0.005"}, "temperature", cold));
}

TEST_CASE("validation samples as training does") {
  for (const auto& [key, other] : {std::pair{"temperature", "0.5"}, {"top_p", "0.9"}, {"top_k", "7"}}) {
    const std::string place = fmt::format("policy.generation.val_{}", key);
    check_says(resolve_error({fmt::format("++{}={}", place, other)}),
               fmt::format("{}: got {}, wanted that of training", place, other));
    CHECK(resolve_error({fmt::format("++{}={}", place, other), fmt::format("++policy.generation.{}={}", key, other)}) ==
          "");
  }
}
