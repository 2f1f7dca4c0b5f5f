// policy.megatron_cfg: which backend trains, model_overrides, sections that are not read.
#include "core/config/typed/run_config.hpp"
#include "tests/config/megatron_support.hpp"

using namespace config_test;
using hexad::config::run_config;

namespace {

const std::string kOn = "++policy.megatron_cfg.enabled=true", kAlso = "++policy.dtensor_cfg.enabled=";

std::string backend(const Overrides& overrides) { return run_config(resolve_text(overrides)).policy.backend; }

}  // namespace

TEST_CASE("megatron_cfg.enabled chooses the backend, and policy.backend is stronger") {
  CHECK(backend({}) == "dtensor");
  CHECK(backend({kOn}) == "megatron");
  CHECK(backend({kOn, kAlso + "false"}) == "megatron");
  CHECK(backend({kOn, kAlso + "true", "++policy.backend=mine"}) == "mine");
  CHECK(backend({"++policy.backend=megatron"}) == "megatron");
  check_says(resolve_error({kOn, kAlso + "true"}), "policy.dtensor_cfg.enabled is true as well; one of them trains");
  check_says(resolve_error({kAlso + "false"}), "no backend: enable policy.dtensor_cfg or policy.megatron_cfg");
}

TEST_CASE("the section of a backend that does not train may hold anything of the right kind") {
  const Overrides asleep = {"++policy.megatron_cfg.fine_grained_activation_offloading=true",
                            "++policy.megatron_cfg.fp8_cfg.enabled=true",
                            "++policy.megatron_cfg.optimizer.optimizer=muon"};
  const auto resolved = resolve_text(asleep);
  CHECK(has_notice(resolved, "policy.megatron_cfg", "not read: dtensor trains"));
  Overrides awake = asleep;
  awake.push_back(kOn);
  check_says(resolve_error(awake), "moving activations to host memory is not available in this version");
  CHECK(resolve_error({kOn, "++policy.dtensor_cfg.lora_cfg.enabled=true"}) == "");
  check_says(resolve_error({"++policy.megatron_cfg.tensor_model_parallel_size=x"}), "wanted an integer");
}

TEST_CASE("model_overrides count as keys of megatron_cfg") {
  const MegatronFiles files(kDense);
  const auto lifted = files.resolve({"model_overrides={activation_checkpointing: true}"}).root;
  CHECK(lifted.as_bool("policy.megatron_cfg.activation_checkpointing"));
  check_says(
      files.error({"tensor_model_parallel_size=2", "model_overrides={tensor_model_parallel_size: 4}"}),
      "model_overrides.tensor_model_parallel_size: policy.megatron_cfg.tensor_model_parallel_size says otherwise: "
      "give the key once");
  check_says(files.error({"model_overrides={rotary_base: 4}"}),
             "model_overrides.rotary_base: no key of policy.megatron_cfg; docs/config.md lists them");
}
