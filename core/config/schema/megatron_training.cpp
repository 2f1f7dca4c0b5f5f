#include "core/config/schema/megatron.hpp"

namespace hexad::config {
namespace {

const std::string kAt = "policy.megatron_cfg";

void add_optimizer_keys(Schema& s) {
  s.section(kAt + ".optimizer", "the optimizer; an absent key is taken from policy.optimizer.kwargs", kMap | kNull);
  const auto key = [&](const char* name, Kinds kinds, const char* value, const char* meaning) {
    return megatron_key(s, std::string("optimizer.") + name, kinds, value, meaning);
  };
  key("optimizer", kText, "adam", "which").one_of({"adam", "sgd"}).not_built({"muon", "dist_muon"});
  key("lr", kFloat, "5e-06", "learning rate").at_least(0);
  key("min_lr", kFloat, "5e-07", "lowest learning rate").at_least(0);
  key("weight_decay", kFloat, "0.01", "weight decay").at_least(0);
  key("bf16", kBool, "true", "bfloat16 training; agrees with policy.precision");
  key("fp16", kBool, "false", "float16 training; agrees with policy.precision");
  key("params_dtype", kText, "float32", "type of the parameters that the optimizer steps")
      .one_of({"float32"})
      .not_built({"bfloat16", "float16"});
  key("adam_beta1", kFloat, "0.9", "decay rate of the first moment").at_least(0).at_most(1);
  key("adam_beta2", kFloat, "0.999", "decay rate of the second moment").at_least(0).at_most(1);
  key("adam_eps", kFloat, "1e-08", "added to the denominator").at_least(0);
  key("sgd_momentum", kFloat, "0.9", "SGD: momentum").at_least(0);
  key("use_distributed_optimizer", kBool, "true", "share optimizer state between data-parallel ranks");
  key("use_precision_aware_optimizer", kBool, "true", "states in the types that the next four keys name");
  key("main_params_dtype", kText, "float32", "master weights").one_of({"float32", "float16"});
  key("main_grads_dtype", kText, "float32", "gradients that the optimizer reads").one_of({"float32", "bfloat16"});
  for (const auto& [name, meaning] :
       {std::pair{"exp_avg_dtype", "first moment"}, std::pair{"exp_avg_sq_dtype", "second moment"}}) {
    key(name, kText, "float32", meaning).one_of({"float32", "bfloat16", "float16", "fp8"});
  }
  key("clip_grad", kFloat | kNull, "${policy.max_grad_norm}", "gradients are clipped to this global norm; null: not");
  key("optimizer_cpu_offload", kBool, "false", "masters and optimizer states in host memory, where they are updated");
  key("optimizer_offload_fraction", kFloat, "0.0", "part of their elements").at_least(0).at_most(1);
  key("overlap_cpu_optimizer_d2h_h2d", kBool, "false", "overlap their copies")
      .accepted(
          "states do not move: gradients are copied to the host, and updated parameters back, one after the other");
}

void add_scheduler(Schema& s) {
  s.section(kAt + ".scheduler", "learning-rate schedule; without this section policy.scheduler is the schedule",
            kMap | kNull);
  const auto key = [&](const char* name, Kinds kinds, const char* value, const char* meaning) {
    return megatron_key(s, std::string("scheduler.") + name, kinds, value, meaning);
  };
  key("start_weight_decay", kFloat, "${policy.megatron_cfg.optimizer.weight_decay}", "first weight decay").at_least(0);
  key("end_weight_decay", kFloat, "${policy.megatron_cfg.optimizer.weight_decay}", "last weight decay").at_least(0);
  key("weight_decay_incr_style", kText, "constant", "how it goes from one to the other")
      .one_of({"constant", "linear", "cosine"});
  key("lr_decay_style", kText, "constant", "form of the decay")
      .one_of({"constant", "linear", "cosine", "inverse-square-root", "WSD"});
  key("lr_decay_iters", kInt | kNull, "1000", "steps until min_lr; null: grpo.max_num_steps").at_least(1);
  key("lr_warmup_iters", kInt, "13", "steps of the warm-up").at_least(0);
  key("lr_warmup_init", kFloat, "5e-07", "learning rate at its start").at_least(0);
  key("lr_wsd_decay_style", kText, "exponential", "WSD: form of its last part")
      .one_of({"exponential", "linear", "cosine", "minus_sqrt"});
  key("lr_wsd_decay_iters", kInt | kNull, "null", "WSD: steps of its last part").at_least(1);
  key("override_opt_param_scheduler", kBool, "false", "a resumed run takes these values, not its checkpoint's")
      .accepted("a checkpoint holds no schedule: a resumed run takes the configuration's either way");
}

void add_gradients(Schema& s) {
  const std::string section = "distributed_data_parallel_config";
  s.section(kAt + "." + section, "gradient reduction", kMap | kNull);
  const auto key = [&](const char* name, Kinds kinds, const char* value, const char* meaning) {
    return megatron_key(s, section + "." + name, kinds, value, meaning);
  };
  key("grad_reduce_in_fp32", kBool, "false",
      "micro-batches add to gradients, and ranks reduce them, in float32; false: in policy.precision");
  key("overlap_grad_reduce", kBool, "true", "overlap it with the backward pass");
  key("overlap_param_gather", kBool, "true",
      "overlap gathering of updated parameters with the forward pass; where the key is absent, only with the "
      "distributed optimizer");
  key("average_in_collective", kBool, "false", "average in the reduction instead of scaling before it");
  key("bucket_size", kInt | kNull, "null", "elements of a bucket; null: max(40e6, 1e6 x data-parallel ranks)")
      .at_least(1);
  key("num_distributed_optimizer_instances", kInt, "1", "replicas of the shared optimizer state").at_least(1);
  key("use_megatron_fsdp", kBool, "false", "data_parallel_sharding_strategy says what data-parallel ranks share");
  key("use_custom_fsdp", kBool, "false", "the older name of use_megatron_fsdp");
  key("data_parallel_sharding_strategy", kText, "optim_grads_params",
      "what data-parallel ranks share, with use_megatron_fsdp; without it: optim or no_shard, as "
      "use_distributed_optimizer says")
      .one_of({"no_shard", "optim", "optim_grads", "optim_grads_params"});
}

void add_checkpoint(Schema& s) {
  s.section(kAt + ".checkpoint", "checkpoints of Megatron-Core")
      .accepted("checkpoints hold Hugging Face names and global shapes and are read under any layout");
  megatron_key(s, "checkpoint.async_save", kBool, "true", "write while training goes on");
  megatron_key(s, "checkpoint.ckpt_assume_constant_structure", kBool, "true", "plan once");
  megatron_key(s, "checkpoint.ckpt_fully_parallel_save_process_group", kText, "dp", "ranks that share the writing");
  megatron_key(s, "checkpoint.ckpt_fully_parallel_load_process_group", kText, "dp", "ranks that share the reading");
  megatron_key(s, "checkpoint.ckpt_fully_parallel_load_exchange_algo", kText, "broadcast",
               "how they exchange what they read");
  for (const char* name : {"fully_parallel_save_process_group", "fully_parallel_load_process_group",
                           "fully_parallel_load_exchange_algo"}) {
    s.add(kAt + ".checkpoint." + name, kText | kNull, "",
          std::string("as ckpt_") + name + ", without the prefix that NeMo-RL reads");
  }
  megatron_key(s, "force_reconvert_from_hf", kBool, "false", "ignore the cache of converted models")
      .accepted("models are read as they are; nothing is converted or cached");
}

}  // namespace

void add_megatron_training(Schema& s) {
  megatron_key(s, "calculate_per_token_loss", kBool, "true", "gradients are sums over tokens, as in NeMo-RL");
  megatron_key(s, "train_iters", kInt | kNull, "null", "steps of the run")
      .at_least(0)
      .accepted("max_num_steps of the algorithm says it; NeMo-RL's driver writes it over this too");
  add_optimizer_keys(s);
  add_scheduler(s);
  add_gradients(s);
  add_checkpoint(s);
  add_fp8(s, kAt, "blockwise", /*filled=*/false);
  megatron_key(s, "fp8_cfg.force_clear_fp8_caches", kBool, "false", "drop FP8 copies before a weight update")
      .accepted("an FP8 copy outlives neither its call nor its weights");
}

}  // namespace hexad::config
