// policy.megatron_cfg: which backend trains, the typed view, overrides, sections that are not read.
#include "core/config/run_config.hpp"
#include "tests/config/megatron_support.hpp"

using namespace config_test;
using hexad::config::MegatronConfig;
using hexad::config::run_config;

namespace {

const std::string kOn = "++policy.megatron_cfg.enabled=true", kAlso = "++policy.dtensor_cfg.enabled=";

std::string backend(const Overrides& overrides) { return run_config(resolve_text(overrides).root).policy.backend; }

MegatronConfig typed(const Overrides& overrides) {
  return run_config(MegatronFiles(kDense).resolve(overrides).root).policy.megatron_cfg;
}

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

TEST_CASE("the typed view holds the keys, and takes what is absent from the common blocks") {
  const MegatronConfig plain = typed({"/policy.optimizer.kwargs={lr: 0.001, betas: [0.8, 0.9], eps: 1e-7}"});
  CHECK(plain.optimizer.lr == 0.001);
  CHECK(plain.optimizer.min_lr == 0.001);
  CHECK(plain.optimizer.adam_beta1 == 0.8);
  CHECK(plain.optimizer.adam_beta2 == 0.9);
  CHECK(plain.optimizer.adam_eps == 1e-7);
  CHECK(!plain.scheduler);
  CHECK(plain.ddp.data_parallel_sharding_strategy == "optim");
  CHECK(plain.pipeline.pipeline_dtype == "bfloat16");
  const MegatronConfig full = typed(
      {"tensor_model_parallel_size=2", "sequence_parallel=true", "pipeline_model_parallel_size=2",
       "pipeline_model_parallel_layout='Et*2|(t|)*4,t*2,L'", "optimizer={lr: 0.1, min_lr: 0.01}",
       "scheduler={lr_decay_iters: null}", "/grpo.max_num_steps=77", "activation_checkpointing=true",
       "distributed_data_parallel_config={use_megatron_fsdp: true, data_parallel_sharding_strategy: optim_grads}"});
  CHECK(full.tensor_model_parallel_size == 2);
  CHECK(full.pipeline.pipeline_model_parallel_layout.size() == 6);
}

TEST_CASE("the distributed optimizer decides what is shared where fsdp is off") {
  CHECK(typed({"optimizer={use_distributed_optimizer: false}"}).ddp.data_parallel_sharding_strategy == "no_shard");
  CHECK(!typed({"optimizer={use_distributed_optimizer: false}"}).ddp.overlap_param_gather);
  CHECK(typed({"distributed_data_parallel_config={use_custom_fsdp: true}"}).ddp.data_parallel_sharding_strategy ==
        "optim_grads_params");
}

TEST_CASE("model_overrides count as keys of megatron_cfg") {
  const MegatronFiles files(kDense);
  CHECK(typed({"model_overrides={activation_checkpointing: true}"}).recompute.activation_checkpointing);
  check_says(
      files.error({"tensor_model_parallel_size=2", "model_overrides={tensor_model_parallel_size: 4}"}),
      "model_overrides.tensor_model_parallel_size: policy.megatron_cfg.tensor_model_parallel_size says otherwise: "
      "give the key once");
  check_says(files.error({"model_overrides={rotary_base: 4}"}),
             "model_overrides.rotary_base: no key of policy.megatron_cfg; docs/config.md lists them");
}

TEST_CASE("the plugin receives every key, with the values in effect") {
  const auto policy = run_config(MegatronFiles(kDense).resolve({"tensor_model_parallel_size=2"}).root).policy.policy;
  const auto& section = policy.at("megatron_cfg");
  CHECK(section.at("enabled") == true);
  CHECK(section.at("tensor_model_parallel_size") == 2);
  CHECK(section.at("pipeline_model_parallel_size") == 1);
  CHECK(section.at("pipeline_model_parallel_layout").is_null());
  CHECK(section.at("cp_comm_type") == std::vector<std::string>{"p2p"});
  CHECK(section.at("scheduler").is_null());
  CHECK(section.at("optimizer").at("lr") == 5e-6);
  CHECK(section.at("distributed_data_parallel_config").at("data_parallel_sharding_strategy") == "optim");
  CHECK(!run_config(resolve_text({}).root).policy.policy.contains("megatron_cfg"));
}
