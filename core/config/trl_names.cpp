#include "core/config/trl_names.hpp"

#include <algorithm>

namespace hexad::config {
namespace {

constexpr std::string_view kBatch =
    "samples of an optimizer step: TRL's per_device_train_batch_size x gradient_accumulation_steps x processes";
constexpr std::string_view kWarmup = "a list: a LinearLR from a small factor to 1, then the schedule, and {milestones}";

constexpr TrlName kNames[] = {
    {"adam_beta1", "policy.optimizer.kwargs.betas", "a list of both"},
    {"adam_beta2", "policy.optimizer.kwargs.betas", "a list of both"},
    {"adam_epsilon", "policy.optimizer.kwargs.eps"},
    {"beta", "loss_fn.reference_policy_kl_penalty"},
    {"bf16", "policy.precision", "bfloat16"},
    {"delta", "loss_fn.ratio_clip_c"},
    {"epsilon", "loss_fn.ratio_clip_min"},
    {"epsilon_high", "loss_fn.ratio_clip_max"},
    {"eval_on_start", "grpo.val_at_start"},
    {"eval_steps", "grpo.val_period"},
    {"fp16", "policy.precision", "float32 or bfloat16"},
    {"generation_batch_size", "grpo.num_prompts_per_step", "prompts; each has grpo.num_generations_per_prompt samples"},
    {"gradient_accumulation_steps", "policy.train_global_batch_size", kBatch},
    {"gradient_checkpointing", "policy.dtensor_cfg.activation_checkpointing"},
    {"greater_is_better", "checkpointing.higher_is_better"},
    {"importance_sampling_level", "loss_fn.sequence_level_importance_ratios", "true: sequence"},
    {"learning_rate", "policy.optimizer.kwargs.lr"},
    {"load_best_model_at_end", "checkpointing.metric_name", "the checkpoints that are kept are the best by it"},
    {"logging_dir", "logger.log_dir"},
    {"loss_type", "loss_fn.token_level_loss", "false: grpo; true: dapo, bnpo; others: docs/from_trl.md"},
    {"lr_scheduler_kwargs", "policy.scheduler", "PyTorch's {name, kwargs}"},
    {"lr_scheduler_type", "policy.scheduler", "PyTorch's {name, kwargs}"},
    {"mask_truncated_completions", "grpo.overlong_filtering"},
    {"max_completion_length", "policy.generation.max_new_tokens"},
    {"max_grad_norm", "policy.max_grad_norm"},
    {"max_length", "policy.max_total_sequence_length"},
    {"max_prompt_length", "data.max_input_seq_length"},
    {"max_seq_length", "policy.max_total_sequence_length"},
    {"max_steps", "grpo.max_num_steps"},
    {"metric_for_best_model", "checkpointing.metric_name"},
    {"min_p", "policy.generation.min_p"},
    {"model_name_or_path", "policy.model_name"},
    {"num_generations", "grpo.num_generations_per_prompt"},
    {"num_generations_eval", "grpo.val_num_generations_per_prompt"},
    {"num_iterations", "policy.train_global_batch_size", "samples of a step / it = optimizer steps a rollout"},
    {"num_train_epochs", "grpo.max_num_epochs"},
    {"optim", "policy.optimizer.name", "PyTorch's name"},
    {"output_dir", "checkpointing.checkpoint_dir", "logs: logger.log_dir"},
    {"per_device_eval_batch_size", "grpo.val_batch_size", "prompts"},
    {"per_device_train_batch_size", "policy.train_global_batch_size", kBatch},
    {"report_to", "logger.tensorboard_enabled"},
    {"reward_weights", "env.NAME.rewards", "docs/rewards.md"},
    {"save_only_model", "checkpointing.save_optimizer", "the other way round"},
    {"save_steps", "checkpointing.save_period"},
    {"save_total_limit", "checkpointing.keep_top_k"},
    {"scale_rewards", "grpo.normalize_rewards"},
    {"seed", "grpo.seed"},
    {"shuffle_dataset", "data.shuffle"},
    {"steps_per_generation", "policy.train_global_batch_size", "samples of a step / it = optimizer steps a rollout"},
    {"temperature", "policy.generation.temperature"},
    {"top_k", "policy.generation.top_k"},
    {"top_p", "policy.generation.top_p"},
    {"use_vllm", "policy.generation.backend", "vllm"},
    {"vllm_gpu_memory_utilization", "policy.generation.vllm_cfg.gpu_memory_utilization"},
    {"vllm_importance_sampling_cap", "loss_fn.truncated_importance_sampling_ratio"},
    {"vllm_importance_sampling_correction", "loss_fn.use_importance_sampling_correction"},
    {"vllm_tensor_parallel_size", "policy.generation.vllm_cfg.tensor_parallel_size"},
    {"warmup_ratio", "policy.scheduler", kWarmup},
    {"warmup_steps", "policy.scheduler", kWarmup},
    {"weight_decay", "policy.optimizer.kwargs.weight_decay"},
};

}  // namespace

std::span<const TrlName> trl_names() { return kNames; }

const TrlName* trl_name(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, &TrlName::name);
  return found == std::end(kNames) ? nullptr : found;
}

}  // namespace hexad::config
