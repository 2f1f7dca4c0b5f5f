#include "compat/verl/translate.hpp"

#include "compat/verl/defaults.hpp"
#include "compat/verl/names.hpp"
#include "compat/verl/pass.hpp"

namespace hexad::compat {
namespace verl {
namespace {

// In the order of our own files.
constexpr const char* kSections[] = {"grpo", "loss_fn", "checkpointing", "policy", "data", "env", "logger", "cluster"};

// Parts of a dump that say how verl's own processes work, and critics, which are told by the estimator.
constexpr std::string_view kQuiet[] = {"critic",
                                       "defaults",
                                       "hydra",
                                       "ray_kwargs",
                                       "ray_init",
                                       "transfer_queue",
                                       "global_profiler",
                                       "reward_manager",
                                       "actor_rollout_ref.ref",
                                       "actor_rollout_ref.nccl_timeout",
                                       "actor_rollout_ref.actor.checkpoint",
                                       "actor_rollout_ref.actor.profiler",
                                       "actor_rollout_ref.actor.rollout_n",
                                       "actor_rollout_ref.actor.data_loader_seed",
                                       "actor_rollout_ref.actor.use_torch_compile",
                                       "actor_rollout_ref.actor.use_remove_padding",
                                       "actor_rollout_ref.actor.load_weight",
                                       "actor_rollout_ref.actor.router_replay.mode",
                                       "actor_rollout_ref.actor.fsdp_config.wrap_policy",
                                       "actor_rollout_ref.actor.fsdp_config.use_torch_compile",
                                       "actor_rollout_ref.actor.fsdp_config.strategy",
                                       "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size",
                                       "actor_rollout_ref.rollout.profiler",
                                       "actor_rollout_ref.rollout.prometheus",
                                       "actor_rollout_ref.rollout.agent",
                                       "actor_rollout_ref.rollout.trace",
                                       "actor_rollout_ref.rollout.checkpoint_engine",
                                       "actor_rollout_ref.rollout.disable_log_stats",
                                       "actor_rollout_ref.rollout.skip_dump_dir",
                                       "actor_rollout_ref.rollout.skip_tokenizer_init",
                                       "actor_rollout_ref.rollout.mtp",
                                       "actor_rollout_ref.rollout.multi_turn",
                                       "actor_rollout_ref.rollout.engine_kwargs",
                                       "actor_rollout_ref.model.fused_kernel_options",
                                       "actor_rollout_ref.model.tiled_mlp",
                                       "actor_rollout_ref.model.mtp",
                                       "actor_rollout_ref.model.lora",
                                       "actor_rollout_ref.rollout.layer_name_map",
                                       "reward_model",
                                       "data.return_raw_chat"};

}  // namespace
}  // namespace verl

Draft from_verl(yaml::Node given) {
  Foreign file(std::move(given), verl::kDefaults);
  verl::Pass pass{file};
  for (const char* section : verl::kSections) pass.out.set(section, yaml::Node::Map{});
  pass.megatron = file.text(verl::kActor + "strategy") == "megatron";
  pass.gpus = file.count("trainer.nnodes") * file.count("trainer.n_gpus_per_node");
  const std::string steps = "trainer.total_training_steps";
  if (file.value(steps) && file.integer(steps).value_or(-1) > 0) pass.steps = file.count(steps);
  translate_strategy(pass);
  translate_batches(pass);
  translate_advantages(pass);
  translate_loss(pass);
  translate_rollout(pass);
  translate_optimizer(pass);
  translate_data(pass);
  translate_trainer(pass);
  for (const std::string& key : file.unread(verl::kQuiet)) pass.out.leave_out(key, why_left_out(verl_names(), key));
  return std::move(pass.out);
}

}  // namespace hexad::compat
