// Rules of policy.batch_invariant: what it is refused with, and the value that goes with it.
#include "tests/config/megatron_support.hpp"

using namespace config_test;

namespace {

// `keys` with batch_invariant, `keys` begin with '/'.
Overrides invariant(Overrides keys) {
  keys.push_back("/policy.batch_invariant=true");
  return keys;
}

void check_refused(const std::string& key, const std::string& got, const std::string& wanted, Overrides besides = {}) {
  besides.push_back("/" + key + "=" + got);
  Overrides valid = besides;
  valid.back() = "/" + key + "=" + wanted;
  check_rules(kDense,
              {{invariant(besides),
                key + ": got " + got + ", wanted " + wanted + " with policy.batch_invariant: true; nearest: " + wanted,
                invariant(valid)}});
}

const Overrides kDtensor = {"/policy.megatron_cfg.enabled=false"};

}  // namespace

TEST_CASE("batch_invariant is refused with what changes log-probs or the order of sums") {
  check_refused("policy.precision", "float32", "bfloat16");
  check_refused("policy.deterministic", "true", "false");
  check_refused("policy.megatron_cfg.tensor_model_parallel_size", "2", "1");
  check_refused("policy.megatron_cfg.pipeline_model_parallel_size", "2", "1");
  check_refused("policy.megatron_cfg.context_parallel_size", "2", "1");
  check_refused("policy.dtensor_cfg.tensor_parallel_size", "2", "1", kDtensor);
  check_refused("policy.dtensor_cfg.context_parallel_size", "2", "1", kDtensor);
  check_refused("policy.dtensor_cfg.fp8_cfg.enabled", "true", "false", kDtensor);
  check_refused("policy.generation.top_p", "0.9", "1.0");
  check_refused("policy.generation.top_k", "20", "null");
  check_refused("policy.generation.min_p", "0.1", "null");
  check_refused("policy.generation.native_cfg.precision", "fp8", "bfloat16");
  check_refused("policy.generation.native_cfg.kv_cache_dtype", "fp8", "auto");
  check_refused("policy.generation.backend", "vllm", "native");
}

TEST_CASE("batch_invariant is refused on CPUs") {
  check_rules(kDense, {{invariant({"/cluster.device=cpu"}),
                        "policy.batch_invariant: is for GPUs, and cluster.device is cpu; "
                        "nearest: false",
                        invariant({"/cluster.device=cuda"})}});
}

TEST_CASE("batch_invariant is refused with a backend of someone else's") {
  check_says(MegatronFiles(kDense).error(invariant({"/policy.backend=other"})),
             "policy.batch_invariant: the backend 'other' does not have it, wanted policy.backend dtensor or megatron; "
             "nearest: false");
}
