#include "compat/trl/names.hpp"

#include <algorithm>

namespace hexad::compat {
namespace {

constexpr std::string_view kBatch =
    "samples of an optimizer step: TRL's per_device_train_batch_size x gradient_accumulation_steps x processes";
constexpr std::string_view kWarmup = "a list: a LinearLR from a small factor to 1, then the schedule, and {milestones}";

constexpr config::OtherName kNames[] = {
    {"TRL", "adam_beta1", "policy.optimizer.kwargs.betas", "a list of both"},
    {"TRL", "adam_beta2", "policy.optimizer.kwargs.betas", "a list of both"},
    {"TRL", "adam_epsilon", "policy.optimizer.kwargs.eps"},
    {"TRL", "beta", "loss_fn.reference_policy_kl_penalty"},
    {"TRL", "bf16", "policy.precision", "bfloat16"},
    {"TRL", "delta", "loss_fn.ratio_clip_c"},
    {"TRL", "epsilon", "loss_fn.ratio_clip_min"},
    {"TRL", "epsilon_high", "loss_fn.ratio_clip_max"},
    {"TRL", "eval_on_start", "grpo.val_at_start"},
    {"TRL", "eval_steps", "grpo.val_period"},
    {"TRL", "fp16", "policy.precision", "float32 or bfloat16"},
    {"TRL", "generation_batch_size", "grpo.num_prompts_per_step",
     "prompts; each has grpo.num_generations_per_prompt samples"},
    {"TRL", "gradient_accumulation_steps", "policy.train_global_batch_size", kBatch},
    {"TRL", "gradient_checkpointing", "policy.dtensor_cfg.activation_checkpointing"},
    {"TRL", "greater_is_better", "checkpointing.higher_is_better"},
    {"TRL", "importance_sampling_level", "loss_fn.sequence_level_importance_ratios", "true: sequence"},
    {"TRL", "learning_rate", "policy.optimizer.kwargs.lr"},
    {"TRL", "load_best_model_at_end", "checkpointing.metric_name", "the checkpoints that are kept are the best by it"},
    {"TRL", "logging_dir", "logger.log_dir"},
    {"TRL", "loss_type", "loss_fn.token_level_loss", "false: grpo; true: dapo, bnpo; others: docs/from_trl.md"},
    {"TRL", "lr_scheduler_kwargs", "policy.scheduler", "PyTorch's {name, kwargs}"},
    {"TRL", "lr_scheduler_type", "policy.scheduler", "PyTorch's {name, kwargs}"},
    {"TRL", "mask_truncated_completions", "grpo.overlong_filtering"},
    {"TRL", "max_completion_length", "policy.generation.max_new_tokens"},
    {"TRL", "max_grad_norm", "policy.max_grad_norm"},
    {"TRL", "max_length", "policy.max_total_sequence_length"},
    {"TRL", "max_prompt_length", "data.max_input_seq_length"},
    {"TRL", "max_seq_length", "policy.max_total_sequence_length"},
    {"TRL", "max_steps", "grpo.max_num_steps"},
    {"TRL", "metric_for_best_model", "checkpointing.metric_name"},
    {"TRL", "min_p", "policy.generation.min_p"},
    {"TRL", "model_name_or_path", "policy.model_name"},
    {"TRL", "num_generations", "grpo.num_generations_per_prompt"},
    {"TRL", "num_generations_eval", "grpo.val_num_generations_per_prompt"},
    {"TRL", "num_iterations", "policy.train_global_batch_size", "samples of a step / it = optimizer steps a rollout"},
    {"TRL", "num_train_epochs", "grpo.max_num_epochs"},
    {"TRL", "optim", "policy.optimizer.name", "PyTorch's name"},
    {"TRL", "output_dir", "checkpointing.checkpoint_dir", "logs: logger.log_dir"},
    {"TRL", "per_device_eval_batch_size", "grpo.val_batch_size", "prompts"},
    {"TRL", "per_device_train_batch_size", "policy.train_global_batch_size", kBatch},
    {"TRL", "report_to", "logger.tensorboard_enabled"},
    {"TRL", "reward_weights", "env.NAME.rewards", "docs/rewards.md"},
    {"TRL", "save_only_model", "checkpointing.save_optimizer", "the other way round"},
    {"TRL", "save_steps", "checkpointing.save_period"},
    {"TRL", "save_total_limit", "checkpointing.keep_top_k"},
    {"TRL", "scale_rewards", "grpo.normalize_rewards"},
    {"TRL", "seed", "grpo.seed"},
    {"TRL", "shuffle_dataset", "data.shuffle"},
    {"TRL", "steps_per_generation", "policy.train_global_batch_size",
     "samples of a step / it = optimizer steps a rollout"},
    {"TRL", "temperature", "policy.generation.temperature"},
    {"TRL", "top_k", "policy.generation.top_k"},
    {"TRL", "top_p", "policy.generation.top_p"},
    {"TRL", "use_vllm", "policy.generation.backend", "vllm"},
    {"TRL", "vllm_gpu_memory_utilization", "policy.generation.vllm_cfg.gpu_memory_utilization"},
    {"TRL", "vllm_importance_sampling_cap", "loss_fn.truncated_importance_sampling_ratio"},
    {"TRL", "vllm_importance_sampling_correction", "loss_fn.use_importance_sampling_correction"},
    {"TRL", "vllm_tensor_parallel_size", "policy.generation.vllm_cfg.tensor_parallel_size"},
    {"TRL", "warmup_ratio", "policy.scheduler", kWarmup},
    {"TRL", "warmup_steps", "policy.scheduler", kWarmup},
    {"TRL", "weight_decay", "policy.optimizer.kwargs.weight_decay"},
};

}  // namespace

std::span<const config::OtherName> trl_names() { return kNames; }

}  // namespace hexad::compat
