#include "compat/verl/defaults.hpp"

namespace hexad::compat::verl {

// verl 0.8.0.dev, commit b178a3cd56f58b2d502255daba591e92833930a7: verl/trainer/config/_generated_ppo_trainer.yaml and
// _generated_ppo_megatron_trainer.yaml; `filter_groups`, `overlong_buffer` and `gen_batch_size` are of its DAPO recipe.
const char* const kDefaults = R"yaml(
actor_rollout_ref:
  hybrid_engine: true
  nccl_timeout: 600
  model:
    path: ~/models/deepseek-llm-7b-chat
    enable_gradient_checkpointing: true
    use_remove_padding: true
    lora_rank: 0
    lora_alpha: 16
    target_modules: all-linear
  actor:
    strategy: fsdp
    ppo_mini_batch_size: 256
    ppo_max_token_len_per_gpu: 16384
    clip_ratio: 0.2
    clip_ratio_low: 0.2
    clip_ratio_high: 0.2
    clip_ratio_c: 3.0
    tau_pos: 1.0
    tau_neg: 1.05
    policy_loss:
      {loss_mode: vanilla, clip_cov_ratio: 0.0002, clip_cov_lb: 1.0, clip_cov_ub: 5.0, kl_cov_ratio: 0.0002,
       ppo_kl_coef: 0.1}
    loss_agg_mode: token-mean
    entropy_coeff: 0
    kl_loss_coef: 0.001
    kl_loss_type: low_var_kl
    ppo_epochs: 1
    grad_clip: 1.0
    ulysses_sequence_parallel_size: 1
    optim:
      lr: 1.0e-6
      lr_warmup_steps_ratio: 0.0
      total_training_steps: -1
      weight_decay: 0.01
      lr_warmup_steps: -1
      betas: [0.9, 0.999]
      clip_grad: 1.0
      min_lr_ratio: 0.0
      num_cycles: 0.5
      lr_scheduler_type: constant
      lr_decay_style: constant
      lr_warmup_init: 0.0
      min_lr: 0.0
      weight_decay_incr_style: constant
      lr_wsd_decay_style: exponential
    fsdp_config: {reshard_after_forward: true, fsdp_size: -1, model_dtype: fp32, dtype: bfloat16, seed: 42}
    megatron:
      tensor_model_parallel_size: 1
      expert_model_parallel_size: 1
      pipeline_model_parallel_size: 1
      context_parallel_size: 1
      sequence_parallel: true
      use_distributed_optimizer: true
      dtype: bfloat16
      seed: 42
      use_mbridge: true
      vanilla_mbridge: true
      use_remove_padding: true
      override_transformer_config: {recompute_modules: [core_attn], attention_backend: flash}
  rollout:
    mode: async
    temperature: 1.0
    top_k: -1
    top_p: 1
    prompt_length: 512
    response_length: 512
    dtype: bfloat16
    gpu_memory_utilization: 0.5
    free_cache_engine: true
    tensor_model_parallel_size: 2
    data_parallel_size: 1
    expert_parallel_size: 1
    pipeline_model_parallel_size: 1
    max_num_batched_tokens: 8192
    max_num_seqs: 256
    enable_chunked_prefill: true
    enable_prefix_caching: true
    logprobs_mode: processed_logprobs
    scheduling_policy: fcfs
    load_format: dummy
    do_sample: true
    n: 1
    over_sample_rate: 0
    val_kwargs: {top_k: -1, top_p: 1.0, temperature: 0, n: 1}
data:
  train_files: ~/data/rlhf/gsm8k/train.parquet
  val_files: ~/data/rlhf/gsm8k/test.parquet
  train_max_samples: -1
  val_max_samples: -1
  prompt_key: prompt
  reward_fn_key: data_source
  max_prompt_length: 512
  max_response_length: 512
  train_batch_size: 1024
  return_raw_chat: true
  shuffle: true
  dataloader_num_workers: 8
  filter_overlong_prompts_workers: 1
  image_patch_size: 14
  image_key: images
  video_key: videos
  truncation: error
  return_multi_modal_inputs: true
algorithm:
  gamma: 1.0
  lam: 1.0
  adv_estimator: gae
  norm_adv_by_std_in_grpo: true
  kl_penalty: kl
  kl_ctrl: {type: fixed, kl_coef: 0.001, horizon: 10000, target_kl: 0.1}
  pf_ppo: {reweight_method: pow, weight_pow: 2.0}
  rollout_correction: {rollout_is_threshold: 2.0, loss_type: ppo_clip}
reward_model: {reward_manager: naive}
custom_reward_function: {name: compute_score}
trainer:
  total_epochs: 30
  project_name: verl_examples
  experiment_name: gsm8k
  logger: [console, wandb]
  log_val_generations: 0
  nnodes: 1
  n_gpus_per_node: 8
  save_freq: -1
  resume_mode: auto
  val_before_train: true
  test_freq: -1
  critic_warmup: 0
  esi_redundant_time: 0
  balance_batch: true
  default_local_dir: checkpoints/${trainer.project_name}/${trainer.experiment_name}
  ray_wait_register_center_timeout: 300
  device: cuda
  use_legacy_worker_impl: auto
)yaml";

}  // namespace hexad::compat::verl
