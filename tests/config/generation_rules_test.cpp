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
  const std::string heads = R"({"model_type": "qwen3", "vocab_size": 64, "hidden_size": 96,
                                "num_attention_heads": 12, "num_key_value_heads": 3, "num_hidden_layers": 8,
                                "intermediate_size": 102})";
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

TEST_CASE("weights go to vLLM by disk, ipc or nccl, to SGLang by gloo too, and to native by no such way") {
  const std::string transport = "/policy.generation.refit_transport=", vllm = "/policy.generation.backend=vllm",
                    sglang = "/policy.generation.backend=sglang";
  check_rules(kDense, {{{transport + "ipc"},
                        "policy.generation.refit_transport: got ipc, which is a way to other servers, and "
                        "policy.generation.backend is native; nearest: null",
                        {transport + "ipc", vllm}},
                       {{transport + "gloo", vllm},
                        "policy.generation.refit_transport: got gloo, which is a way to SGLang's servers, and "
                        "policy.generation.backend is vllm; nearest: disk",
                        {transport + "disk", vllm}},
                       {{transport + "ipc", sglang, "/cluster.device=cpu"},
                        "policy.generation.refit_transport: got ipc, which goes from GPU to GPU, and cluster.device is "
                        "cpu; nearest: gloo",
                        {transport + "gloo", sglang, "/cluster.device=cpu"}},
                       {{transport + "nccl", sglang, "/cluster.device=cuda"},
                        "policy.generation.refit_transport: got nccl, and a server that a rank starts is on the rank's "
                        "own GPU, of which NCCL takes one process",
                        {transport + "ipc", sglang, "/cluster.device=cuda"}},
                       {{transport + "nccl", sglang, "/cluster.device=cuda"},
                        "nearest: ipc",
                        {transport + "nccl", sglang, "/cluster.device=cuda",
                         "/policy.generation.sglang_cfg.env_vars={CUDA_VISIBLE_DEVICES: '7'}"}},
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
  const std::string room = "++policy.max_total_sequence_length=64",
                    most = "++policy.generation.max_new_tokens=", ends = "policy.max_total_sequence_length (64) tokens";
  CHECK(told({room, most + "65"}, "max_new_tokens", ends));
  CHECK_FALSE(told({room, most + "64"}, "max_new_tokens", ends));
  const std::string vllm = "++policy.generation.backend=vllm",
                    kwargs = "++policy.generation.vllm_kwargs=", processors = "training's log-probs are without them";
  CHECK(told({vllm, kwargs + "{logits_processors: [mine]}"}, "vllm_kwargs", processors));
  CHECK_FALSE(told({vllm, kwargs + "{seed: 3}"}, "vllm_kwargs", processors));
  CHECK_FALSE(told({vllm}, "vllm_kwargs", processors));
}

TEST_CASE("a KL in the rewards is told of where the sampling filters are on one of its sides") {
  const Overrides kl = {"++loss_fn.use_kl_in_reward=true", "++grpo.adv_estimator.name=reinforce_plus_plus"};
  const auto told = [&](const std::string& filter) {
    return has_notice(resolve_text({kl[0], kl[1], filter}), "loss_fn.use_kl_in_reward", "under top_p and top_k");
  };
  CHECK(told("++policy.generation.top_p=0.9"));
  CHECK(told("++policy.generation.top_k=20"));
  CHECK_FALSE(told("++policy.generation.top_k=-1"));
  CHECK_FALSE(told("++policy.generation.temperature=0.7"));
  CHECK_FALSE(has_notice(resolve_text({"++policy.generation.top_p=0.9"}), "loss_fn.use_kl_in_reward", "under top_p"));
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

TEST_CASE("a text that goes on behind a NUL is no name and no path") {
  const auto error = [](const std::string& folder) {
    return resolve_error({}, kValid + "logger: {log_dir: \"" + folder + "\"}\n");
  };
  CHECK(error("a") == "");
  check_says(error("a\\0b"), "logger.log_dir: a NUL character, at which names and paths would end");
}

TEST_CASE("a request that every generator refuses is refused before the run") {
  const std::string at = "/policy.generation.";
  check_rules(
      kDense,
      {{{at + "stop_strings=[a, '']"}, "policy.generation.stop_strings: element 1 is ", {at + "stop_strings=[a]"}},
       {{at + "stop_token_ids=[3, -1]"},
        "policy.generation.stop_token_ids: element 1 is int -1, wanted a token, 0 to 2147483647",
        {at + "stop_token_ids=[3, 2147483647]"}},
       {{at + "stop_token_ids=[2147483648]"}, "wanted a token, 0 to 2147483647", {at + "stop_token_ids=null"}},
       {{at + "imposed_lengths=[0]"},
        "policy.generation.imposed_lengths: element 0 is int 0, wanted tokens, at least 1",
        {at + "imposed_lengths=null"}},
       {{at + "imposed_lengths=[1, 2]", "/grpo.num_prompts_per_step=1", "/grpo.num_generations_per_prompt=3"},
        "policy.generation.imposed_lengths: has 2 lengths, wanted 3: grpo.num_prompts_per_step 1 x "
        "grpo.num_generations_per_prompt 3",
        {at + "imposed_lengths=[]"}},
       {{"/policy.max_total_sequence_length=1073741825"},
        "policy.max_total_sequence_length: got int 1073741825, wanted at least 1, at most 1073741824",
        {"/policy.max_total_sequence_length=4096"}}});
}

TEST_CASE("a temperature that the generator refuses, or does not draw at, is refused before the run") {
  const std::string temperature = "/policy.generation.temperature=";
  for (const std::string backend : {"native", "vllm"}) {
    const std::string generator = "/policy.generation.backend=" + backend;
    check_rules(kDense, {{{generator, temperature + "2.5"},
                          "policy.generation.temperature: got 2.5, wanted at most 2 with policy.generation.backend " +
                              backend + "; nearest: 2",
                          {generator, temperature + "2"}},
                         {{generator, temperature + "0.001"},
                          "policy.generation.temperature: got 0.001, wanted at least 0.01 with "
                          "policy.generation.backend " +
                              backend + "; nearest: 0.01",
                          {generator, temperature + "0.01"}}});
  }
}

TEST_CASE("models and arithmetic that the native generator cannot run are refused before the run") {
  const std::string own = "/policy.generation.native_cfg.", fp8 = own + "precision=fp8",
                    corrected = "/loss_fn.use_importance_sampling_correction=true";
  check_rules(kDense,
              {{{fp8, corrected, "/cluster.device=cpu"},
                "policy.generation.native_cfg.precision: 'fp8' runs on GPUs, and cluster.device is cpu",
                {fp8, corrected}},
               {{fp8, corrected, own + "deterministic=true"},
                "'fp8' does not go with native_cfg.deterministic or policy.deterministic: true",
                {fp8, corrected, own + "deterministic=false"}},
               {{own + "tensor_parallel_size=2", own + "precision=float16", "/cluster.device=cpu"},
                "got float16, wanted float32 or bfloat16 on CPUs with",
                {own + "tensor_parallel_size=2", own + "precision=bfloat16", "/cluster.device=cpu"}},
               {{own + "max_num_seqs=1073741825"}, "wanted at least 1, at most 1073741824", {own + "max_num_seqs=8"}},
               {{"/policy.hf_config_overrides={kv_lora_rank: 16}"},
                "policy.generation.backend: got native, which cannot run a model with multi-head latent attention",
                {"/policy.hf_config_overrides={kv_lora_rank: 16}", "/policy.generation.backend=vllm"}}});
  check_rules(kExperts,
              {{{fp8, corrected}, "'fp8' needs a dense model; nearest: bfloat16", {own + "precision=bfloat16"}}});
}

TEST_CASE("what vLLM's servers are refused for is refused before the run") {
  const std::string vllm = "/policy.generation.backend=vllm", at = "/policy.generation.", own = at + "vllm_cfg.";
  check_rules(
      kDense,
      {{{vllm, own + "stall_timeout_s=1.0e9"}, "vllm_cfg.stall_timeout_s: got ", {vllm, own + "stall_timeout_s=9"}},
       {{vllm, own + "num_servers=1025"}, "wanted at least 1, at most 1024", {vllm, own + "num_servers=2"}},
       {{vllm, at + "port_range_low=6000"},
        "policy.generation.port_range_low: got 6000, wanted at most port_range_high (4999); nearest: 4999",
        {vllm, at + "port_range_low=4999"}},
       {{vllm, at + "refit_transport=ipc", "/cluster.device=cpu"},
        "policy.generation.refit_transport: got ipc, which goes from GPU to GPU, and cluster.device is cpu; nearest: "
        "disk",
        {vllm, at + "refit_transport=disk", "/cluster.device=cpu"}},
       {{vllm, own + "server_urls=['http://a:1']"},
        "vllm_cfg.server_urls: got 1 servers for 8 ranks that generate, wanted at least one a rank",
        {vllm, own + "server_urls=['http://a:1']", "/cluster.gpus_per_node=1"}},
       {{vllm, own + "tensor_parallel_size=2", "/cluster.device=cuda"},
        "vllm_cfg.tensor_parallel_size: got 2, wanted 1: a server is given its rank's one CUDA device",
        {vllm, own + "tensor_parallel_size=2", "/cluster.device=cuda", own + "env_vars={CUDA_VISIBLE_DEVICES: '0,1'}"}},
       {{vllm, at + "vllm_kwargs={load_format: dummy}"},
        "policy.generation.vllm_kwargs: load_format is dummy",
        {vllm, at + "vllm_kwargs={load_format: auto}"}},
       {{vllm, at + "vllm_kwargs={port: 1}"},
        "policy.generation.vllm_kwargs: model, host, port, uds and api_key are the bridge's to set",
        {vllm, at + "vllm_kwargs={swap_space: 1}"}}});
  check_rules(kExperts, {{{vllm, "/policy.router_replay.enabled=true"},
                          "policy.generation.backend: got vllm, which does not fetch routed_experts yet",
                          {vllm, "/policy.router_replay.enabled=true", "/policy.router_replay.source=logprobs"}}});
}

TEST_CASE("FP8 of vLLM's servers is refused where no server has it") {
  const std::string vllm = "/policy.generation.backend=vllm", at = "/policy.generation.", own = at + "vllm_cfg.",
                    fp8 = own + "precision=fp8", corrected = "/loss_fn.use_importance_sampling_correction=true";
  check_rules(
      kDense,
      {{{vllm, fp8},
        "policy.generation.vllm_cfg.precision: 'fp8' needs loss_fn.use_importance_sampling_correction: true",
        {vllm, fp8, corrected}},
       {{vllm, own + "is_mx=true", own + "precision=bfloat16"},
        "vllm_cfg.is_mx: got true, which is a form of FP8, and vllm_cfg.precision is bfloat16; wanted fp8",
        {vllm, own + "is_mx=true", fp8, corrected}},
       {{vllm, fp8, corrected, own + "is_mx=true", own + "pow2_weight_scaling_factors=false"},
        "vllm_cfg.pow2_weight_scaling_factors: got false, and scales of MX (vllm_cfg.is_mx) are powers of two",
        {vllm, fp8, corrected, own + "pow2_weight_scaling_factors=false"}},
       {{vllm, fp8, corrected, own + "pow2_activation_scaling_factors=true"},
        "vllm_cfg.pow2_activation_scaling_factors: got true; only DeepGEMM rounds them",
        {vllm, fp8, corrected, own + "pow2_activation_scaling_factors=true", own + "use_deep_gemm=true",
         own + "pow2_weight_scaling_factors=true"}},
       {{vllm, fp8, corrected, own + "kv_cache_dtype=fp8_e5m2"},
        "vllm_cfg.kv_cache_dtype: got fp8_e5m2, which vLLM has not beside weights in FP8; nearest: fp8",
        {vllm, fp8, corrected, own + "kv_cache_dtype=fp8"}},
       {{vllm, fp8, corrected, own + "num_first_layers_in_bf16=1000"},
        "vllm_cfg.num_first_layers_in_bf16: got 1000, and vllm_cfg.num_last_layers_in_bf16 is 0; the model has",
        {vllm, fp8, corrected, own + "num_first_layers_in_bf16=1"}},
       {{vllm, fp8, corrected, at + "vllm_kwargs={quantization: fp8}"},
        "policy.generation.vllm_kwargs: got a quantization of its own, and vllm_cfg.precision is fp8",
        {vllm, at + "vllm_kwargs={quantization: fp8}"}},
       {{vllm, own + "data_parallel_size=2", "/cluster.device=cuda"},
        "vllm_cfg.data_parallel_size: got 2, wanted 1: a server is given its rank's one CUDA device",
        {vllm, own + "data_parallel_size=2", "/cluster.device=cuda", own + "env_vars={CUDA_VISIBLE_DEVICES: '0,1'}"}},
       {{vllm, own + "data_parallel_size=2", "/cluster.device=cuda", own + "env_vars={CUDA_VISIBLE_DEVICES: '0,1'}",
         at + "refit_transport=ipc"},
        "refit_transport: got ipc, which reaches a rank's own GPU alone, and a server has several ranks; nearest: nccl",
        {vllm, own + "data_parallel_size=2", "/cluster.device=cuda", own + "env_vars={CUDA_VISIBLE_DEVICES: '0,1'}",
         at + "refit_transport=nccl"}}});
}
