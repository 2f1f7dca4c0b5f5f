#include "compat/trl/defaults.hpp"

#include <string>

namespace hexad::compat::trl {
namespace {

// TrainingArguments of transformers (00349ae87eddc872ffa21a8a54f264375a0056a8, src/transformers/training_args.py), as
// _BaseConfig of TRL changes them (1.10.0.dev0, f2cd57710ae345ea6428ae95363267fcf38a3dc8, trl/trainer/base_config.py),
// ModelConfig and the arguments of its scripts; the last six are of transformers 4. What is null, false or empty there
// is left out.
constexpr std::string_view kCommon = R"yaml(
output_dir: trainer_output
per_device_train_batch_size: 8
per_device_eval_batch_size: 8
gradient_accumulation_steps: 1
num_train_epochs: 3.0
max_steps: -1
lr_scheduler_type: linear
warmup_steps: 0
optim: adamw_torch_fused
weight_decay: 0.0
adam_beta1: 0.9
adam_beta2: 0.999
adam_epsilon: 1.0e-8
max_grad_norm: 1.0
average_tokens_across_devices: true
label_smoothing_factor: 0.0
fp16: false
gradient_checkpointing: true
logging_strategy: steps
logging_steps: 10
log_on_each_node: true
logging_nan_inf_filter: true
include_num_input_tokens_seen: 'no'
log_level: passive
log_level_replica: warning
report_to: none
project: huggingface
trackio_space_id: trackio
eval_strategy: 'no'
eval_delay: 0
eval_on_start: false
eval_do_concat_batches: true
save_strategy: steps
save_steps: 500
hub_strategy: every_save
seed: 42
dataloader_num_workers: 0
dataloader_pin_memory: true
train_sampling_strategy: random
length_column_name: length
ddp_timeout: 1800
skip_memory_metrics: true
local_rank: -1
model_revision: main
dtype: float32
lora_r: 16
lora_alpha: 32
lora_dropout: 0.05
lora_task_type: CAUSAL_LM
bnb_4bit_quant_type: nf4
dataset_train_split: train
dataset_test_split: test
router_aux_loss_coef: 0.001
past_index: -1
ray_scope: last
save_safetensors: true
fp16_backend: auto
half_precision_backend: auto
fp16_opt_level: O1
)yaml";

// GRPOConfig of the same commit.
constexpr std::string_view kGrpo = R"yaml(
learning_rate: 1.0e-6
remove_unused_columns: false
num_generations: 8
max_completion_length: 512
ds3_gather_for_generation: true
shuffle_dataset: true
temperature: 1.0
top_p: 1.0
top_k: 0
repetition_penalty: 1.0
use_vllm: false
vllm_mode: colocate
vllm_model_impl: vllm
vllm_server_host: 0.0.0.0
vllm_server_port: 8000
vllm_server_timeout: 240.0
vllm_group_port: 51216
vllm_gpu_memory_utilization: 0.3
vllm_tensor_parallel_size: 1
beta: 0.0
num_iterations: 1
epsilon: 0.2
sapo_temperature_neg: 1.05
sapo_temperature_pos: 1.0
vespo_k_pos: 2.0
vespo_lambda_pos: 3.0
vespo_k_neg: 3.0
vespo_lambda_neg: 2.0
importance_sampling_level: token
multi_objective_aggregation: sum_then_normalize
scale_rewards: group
loss_type: dapo
mask_truncated_completions: false
sync_ref_model: false
ref_model_mixup_alpha: 0.6
ref_model_sync_steps: 512
top_entropy_quantile: 1.0
entropy_coef: 0.0
entropy_coef_min: 0.0
entropy_coef_max: 1.0
entropy_coef_delta: 0.005
entropy_target: 0.2
vllm_importance_sampling_correction: true
vllm_importance_sampling_mode: sequence_mask
vllm_importance_sampling_clip_max: 3.0
log_multimodal: true
)yaml";

// SFTConfig of the same commit.
constexpr std::string_view kSft = R"yaml(
learning_rate: 2.0e-5
remove_unused_columns: true
dataset_text_field: text
max_length: 1024
truncation_mode: keep_start
shuffle_dataset: false
packing: false
packing_strategy: bfd
)yaml";

// DPOConfig of the same commit.
constexpr std::string_view kDpo = R"yaml(
learning_rate: 1.0e-6
remove_unused_columns: true
max_length: 1024
truncation_mode: keep_start
loss_type: [sigmoid]
f_divergence_type: reverse_kl
f_alpha_divergence_coef: 0.5
label_smoothing: 0.0
beta: 0.1
discopop_tau: 0.05
disable_dropout: true
sync_ref_model: false
ref_model_mixup_alpha: 0.6
ref_model_sync_steps: 512
)yaml";

// RewardConfig of the same commit.
constexpr std::string_view kReward = R"yaml(
learning_rate: 1.0e-4
remove_unused_columns: true
max_length: 1024
disable_dropout: true
)yaml";

}  // namespace

std::string defaults_of(Trainer trainer) {
  const std::string_view own = trainer == Trainer::grpo  ? kGrpo
                               : trainer == Trainer::sft ? kSft
                               : trainer == Trainer::dpo ? kDpo
                                                         : kReward;
  return std::string(kCommon) + std::string(own);
}

}  // namespace hexad::compat::trl
