// A config of verl's written as one of ours: sizes, estimators, losses, layouts, and what is named because it is left
// out.
#include "compat/verl/translate.hpp"

#include "compat/draft/foreign.hpp"
#include "lib/yaml/file.hpp"
#include "tests/compat/support.hpp"

using namespace compat_test;
using hexad::compat::Draft;
using hexad::yaml::Node;

namespace {

// Of an empty file, and these settings over it.
Draft verl(const Overrides& settings, const std::string& file = "") {
  const Files files("verl.yaml", file);
  return hexad::compat::from_verl(hexad::compat::read_foreign((files / "verl.yaml").string(), settings));
}

std::string refused(const Overrides& settings, const std::string& file = "") {
  return message_of([&] { verl(settings, file); });
}

std::string value(const Draft& draft, const std::string& path) {
  const Node* node = draft.root().find(path);
  return node ? node->to_json().dump() : "absent";
}

void is(const Draft& draft, const std::string& path, const std::string& json) {
  CHECK_MESSAGE(value(draft, path) == json, path << ": " << value(draft, path) << ", wanted " << json);
}

std::string why(const Draft& draft, const std::string& key) {
  for (const auto& each : draft.left_out()) {
    if (each.key == key) return each.why;
  }
  return "";
}

const std::string kActor = "actor_rollout_ref.actor.";
const std::string kRollout = "actor_rollout_ref.rollout.";
const std::string kGrpo = "algorithm.adv_estimator=grpo";

}  // namespace

TEST_CASE("verl counts prompts: a mini-batch is so many prompts times rollout.n samples") {
  const Draft draft =
      verl({kGrpo, "data.train_batch_size=1024", kActor + "ppo_mini_batch_size=256", kRollout + "n=8",
            kActor + "ppo_micro_batch_size_per_gpu=4", kRollout + "log_prob_micro_batch_size_per_gpu=16"});
  is(draft, "grpo.num_prompts_per_step", "1024");
  is(draft, "grpo.num_generations_per_prompt", "8");
  is(draft, "policy.train_global_batch_size", "2048");
  is(draft, "policy.train_micro_batch_size", "4");
  is(draft, "policy.logprob_batch_size", "16");
  CHECK(draft.text("t").find("ppo_mini_batch_size 256 prompts x rollout.n 8; 4 optimizer steps a rollout") !=
        std::string::npos);
  is(verl({kActor + "ppo_micro_batch_size=32", "trainer.nnodes=2"}), "policy.train_micro_batch_size", "2");
  const Draft tokens = verl({kActor + "use_dynamic_bsz=true", kActor + "ppo_max_token_len_per_gpu=4096",
                             kActor + "ulysses_sequence_parallel_size=2"});
  is(tokens, "policy.sequence_packing.train_mb_tokens", "8192");
  is(tokens, "policy.dtensor_cfg.context_parallel_size", "2");
  is(tokens, "policy.dtensor_cfg.cp_comm_type", "\"a2a\"");
  check_says(why(verl({kActor + "ppo_epochs=2"}), kActor + "ppo_epochs"), "2, and here each sample trains once");
  const Draft dapo =
      verl({"++algorithm.filter_groups.enable=true", "++algorithm.filter_groups.max_num_gen_batches=10",
            "+data.gen_batch_size=1536", "data.train_batch_size=512", "+algorithm.filter_groups.metric=seq"});
  is(dapo, "grpo.use_dynamic_sampling", "true");
  is(dapo, "grpo.dynamic_sampling_max_gen_batches", "10");
  is(dapo, "grpo.batch_multiplier", "3.0");
  check_says(why(dapo, "algorithm.filter_groups.metric"), "seq: groups are judged by their rewards");
}

TEST_CASE("estimators of verl's, and those that need what is not here") {
  const Draft grpo = verl({kGrpo});
  is(grpo, "grpo.adv_estimator.name", "\"grpo\"");
  is(grpo, "grpo.normalize_rewards", "true");
  is(grpo, "grpo.use_leave_one_out_baseline", "false");
  is(verl({kGrpo, "algorithm.norm_adv_by_std_in_grpo=false"}), "grpo.normalize_rewards", "false");
  const Draft rloo = verl({"algorithm.adv_estimator=rloo"});
  is(rloo, "grpo.use_leave_one_out_baseline", "true");
  is(rloo, "grpo.normalize_rewards", "false");
  const Draft reinforce = verl({"algorithm.adv_estimator=reinforce_plus_plus", "algorithm.gamma=0.9"});
  is(reinforce, "grpo.adv_estimator", R"({"name":"reinforce_plus_plus","minus_baseline":false})");
  CHECK(why(reinforce, "algorithm.gamma") == "tokens are not discounted");
  is(verl({"algorithm.adv_estimator=reinforce_plus_plus_baseline"}), "grpo.adv_estimator.minus_baseline", "true");
  check_says(why(verl({}), "algorithm.adv_estimator"), "'gae' needs a critic, which is not available; written as grpo");
  check_says(why(verl({"algorithm.adv_estimator=remax"}), "algorithm.adv_estimator"), "'remax' is not available");
}

TEST_CASE("the KL in the loss, and in rewards with reinforce_plus_plus alone") {
  const Draft loss = verl({kGrpo, kActor + "use_kl_loss=true", kActor + "kl_loss_coef=0.01"});
  is(loss, "loss_fn.reference_policy_kl_penalty", "0.01");
  is(loss, "loss_fn.reference_policy_kl_type", "\"k3\"");
  is(loss, "loss_fn.kl_input_clamp_value", "absent");  // verl's bounds are the defaults here
  const Draft k1 = verl({kGrpo, kActor + "use_kl_loss=true", kActor + "kl_loss_type=kl"});
  is(k1, "loss_fn.reference_policy_kl_type", "\"k1\"");
  is(k1, "loss_fn.kl_output_clamp_value", "null");
  check_says(why(verl({kActor + "use_kl_loss=true", kActor + "kl_loss_type=abs"}), kActor + "kl_loss_type"),
             "'abs' is not available; written as k3");
  is(verl({kGrpo, kActor + "kl_loss_coef=0.5"}), "loss_fn.reference_policy_kl_penalty", "0.0");
  const Draft reward =
      verl({"algorithm.adv_estimator=reinforce_plus_plus", "algorithm.use_kl_in_reward=true",
            "algorithm.kl_ctrl.kl_coef=0.02", kActor + "use_kl_loss=true", "algorithm.kl_ctrl.type=adaptive"});
  is(reward, "loss_fn.use_kl_in_reward", "true");
  is(reward, "loss_fn.reference_policy_kl_penalty", "0.02");
  is(reward, "loss_fn.reference_policy_kl_type", "\"k1\"");
  check_says(why(reward, kActor + "use_kl_loss"), "the KL is in the rewards already");
  CHECK(why(reward, "algorithm.kl_ctrl.type") == "the coefficient stays as it is here");
  check_says(why(verl({kGrpo, "algorithm.use_kl_in_reward=true"}), "algorithm.use_kl_in_reward"),
             "the KL is taken off rewards with reinforce_plus_plus alone");
}

TEST_CASE("clipping, objectives and how tokens are summed up") {
  const Draft draft =
      verl({kActor + "clip_ratio_low=0.1", kActor + "clip_ratio_high=0.28", kActor + "clip_ratio_c=10"});
  is(draft, "loss_fn.ratio_clip_min", "0.1");
  is(draft, "loss_fn.ratio_clip_max", "0.28");
  is(draft, "loss_fn.ratio_clip_c", "10");
  is(draft, "loss_fn.token_level_loss", "true");
  // verl's own default of the bounds hides clip_ratio.
  const Draft hidden = verl({kActor + "clip_ratio=0.3"});
  is(hidden, "loss_fn.ratio_clip_max", "0.2");
  check_says(why(hidden, kActor + "clip_ratio"), "0.3 has no effect in verl either");
  is(verl({kActor + "clip_ratio=0.3", kActor + "clip_ratio_low=null", kActor + "clip_ratio_high=null"}),
     "loss_fn.ratio_clip_max", "0.3");
  const std::string mode = kActor + "loss_agg_mode";
  is(verl({mode + "=seq-mean-token-mean"}), "loss_fn.token_level_loss", "false");
  check_says(why(verl({mode + "=seq-mean-token-sum"}), mode), "'seq-mean-token-sum': sums of tokens are not divided");
  const std::string objective = "++" + kActor + "policy_loss.loss_mode=";
  const Draft gspo = verl({objective + "gspo", mode + "=seq-mean-token-mean"});
  is(gspo, "loss_fn.sequence_level_importance_ratios", "true");
  is(gspo, "loss_fn.ratio_clip_c", "absent");
  check_says(why(verl({objective + "gspo"}), mode), "'token-mean' does not go with ratios of sequences");
  is(verl({objective + "cispo"}), "loss_fn.use_cispo", "true");
  is(verl({objective + "gpg"}), "loss_fn.disable_ppo_ratio", "true");
  check_says(why(verl({objective + "clip_cov"}), kActor + "policy_loss.loss_mode"), "'clip_cov' is not available");
  check_says(why(verl({kActor + "entropy_coeff=0.001"}), kActor + "entropy_coeff"), "losses of entropy");
  const std::string correction = "algorithm.rollout_correction.rollout_is";
  const Draft tis = verl({correction + "=token", correction + "_threshold=3.0"});
  is(tis, "loss_fn.truncated_importance_sampling_type", "\"tis\"");
  is(tis, "loss_fn.truncated_importance_sampling_ratio", "3.0");
  check_says(why(verl({correction + "=sequence"}), correction), "sequence: weights are by token here");
}

TEST_CASE("FSDP is dtensor, Megatron is megatron") {
  const std::string fsdp = kActor + "fsdp_config.";
  const Draft draft = verl({kActor + "strategy=fsdp2", fsdp + "fsdp_size=4", fsdp + "param_offload=true",
                            fsdp + "optimizer_offload=true", "trainer.n_gpus_per_node=8", kActor + "grad_clip=0.5"});
  is(draft, "policy.dtensor_cfg.enabled", "true");
  is(draft, "policy.dtensor_cfg.dp_replicate_size", "2");
  is(draft, "policy.dtensor_cfg.cpu_offload", "true");
  is(draft, "policy.max_grad_norm", "0.5");
  check_says(why(verl({fsdp + "param_offload=true"}), fsdp + "param_offload"), "are kept in host memory together");
  check_says(why(verl({fsdp + "fsdp_size=3"}), fsdp + "fsdp_size"), "3 does not divide the 8 GPUs");
  check_says(why(verl({kActor + "strategy=veomni"}), kActor + "strategy"), "'veomni' is not available");
  CHECK(refused({fsdp + "dtype=int8"}) ==
        "override 'actor_rollout_ref.actor.fsdp_config.dtype=int8': "
        "actor_rollout_ref.actor.fsdp_config.dtype: got 'int8', wanted bfloat16, "
        "float16 or float32");
  const std::string megatron = kActor + "megatron.";
  const Draft parallel = verl({kActor + "strategy=megatron", megatron + "tensor_model_parallel_size=2",
                               megatron + "pipeline_model_parallel_size=4", megatron + "param_offload=true",
                               megatron + "optimizer_offload=true", kActor + "optim.clip_grad=2.0",
                               megatron + "override_transformer_config.recompute_granularity=selective"});
  is(parallel, "policy.dtensor_cfg.enabled", "false");
  is(parallel, "policy.megatron_cfg.enabled", "true");
  is(parallel, "policy.megatron_cfg.tensor_model_parallel_size", "2");
  is(parallel, "policy.megatron_cfg.pipeline_model_parallel_size", "4");
  is(parallel, "policy.megatron_cfg.sequence_parallel", "true");
  is(parallel, "policy.make_sequence_length_divisible_by", "2");
  const Draft context = verl({kActor + "strategy=megatron", megatron + "context_parallel_size=3"});
  is(context, "policy.make_sequence_length_divisible_by", "6");
  is(context, "policy.max_total_sequence_length", "1026");  // of 1024
  is(parallel, "policy.megatron_cfg.recompute_modules", R"(["core_attn"])");
  is(parallel, "policy.megatron_cfg.optimizer.optimizer_cpu_offload", "true");
  is(parallel, "policy.max_grad_norm", "2.0");
  check_says(why(parallel, megatron + "param_offload"), "weights and gradients stay on the GPU");
  check_says(why(verl({"actor_rollout_ref.model.lora_rank=32"}), "actor_rollout_ref.model.lora_rank"),
             "low-rank adapters");
}

TEST_CASE("schedules are stepped once a rollout, as here") {
  const std::string at = kActor + "optim.";
  const Draft cosine = verl({at + "lr_scheduler_type=cosine", at + "min_lr_ratio=0.1",
                             at + "lr_warmup_steps_ratio=0.05", at + "lr=2e-6", "trainer.total_training_steps=200"});
  is(cosine, "policy.scheduler.0.kwargs.total_iters", "10");
  is(cosine, "policy.scheduler.1.kwargs.T_max", "190");
  CHECK(cosine.root().as_double("policy.scheduler.1.kwargs.eta_min") == doctest::Approx(2e-7));
  is(cosine, "grpo.max_num_steps", "200");
  is(verl({at + "lr_warmup_steps=10"}), "policy.scheduler.2.milestones", "[10]");
  is(verl({}), "policy.scheduler", "absent");
  const Draft endless = verl({at + "lr_scheduler_type=cosine", at + "lr_warmup_steps_ratio=0.05"});
  check_says(why(endless, at + "lr_scheduler_type"), "put trainer.total_training_steps=N behind the file");
  check_says(why(endless, at + "lr_warmup_steps_ratio"), "a share of the run");
  check_says(why(verl({kActor + "strategy=megatron", at + "lr_decay_style=WSD"}), at + "lr_decay_style"),
             "'WSD' is not");
  check_says(why(verl({at + "optimizer=Lion"}), at + "optimizer"), "'Lion' is not translated; written as AdamW");
}

TEST_CASE("rollouts, rows and rewards") {
  const Draft draft =
      verl({kRollout + "name=vllm", kRollout + "tensor_model_parallel_size=4", kRollout + "temperature=0.6",
            kRollout + "gpu_memory_utilization=0.8", "data.max_prompt_length=100", "data.max_response_length=300",
            "data.train_files=[a.parquet, b.jsonl]", "custom_reward_function.path=my.py", "data.train_max_samples=50"});
  is(draft, "policy.generation.backend", "\"vllm\"");
  is(draft, "policy.generation.vllm_cfg.tensor_parallel_size", "4");
  is(draft, "policy.max_total_sequence_length", "400");
  is(draft, "policy.generation.max_new_tokens", "300");
  is(draft, "data.max_input_seq_length", "100");
  is(draft, "data.train.0",
     R"({"dataset_name":"openai_format","chat_key":"prompt","output_key":"reward_model.ground_truth",)"
     R"("data_path":"a.parquet","max_samples":50})");
  is(draft, "data.train.1.max_samples", "50");
  CHECK(why(draft, "data.train_files").empty());
  is(verl({"data.prompt_key=question", "data.train_files=a.parquet"}), "data.train.chat_key", "\"question\"");
  is(draft, "data.default.env_name", "\"my_reward\"");
  is(draft, "env", "{\"my_reward\":{\"python\":\"my.py:compute_score\"}}");
  is(verl({"custom_reward_function.path=my.py", "custom_reward_function.name=score"}), "env.my_reward.python",
     "\"my.py:score\"");
  const Draft sglang = verl({kRollout + "name=sglang"});
  is(sglang, "policy.generation.backend", "\"native\"");
  is(sglang, "env", "{\"math\":{}}");
  check_says(why(sglang, "data.reward_fn_key"), "verl chooses a reward by each row's data_source");
  check_says(why(sglang, kRollout + "val_kwargs.temperature"), "validation draws as training does");
  CHECK(why(verl({kRollout + "val_kwargs.do_sample=true", kRollout + "val_kwargs.temperature=1.0"}),
            kRollout + "val_kwargs.temperature")
            .empty());
  check_says(why(verl({kRollout + "multi_turn.enable=true"}), kRollout + "multi_turn.enable"),
             "grpo.max_rollout_turns");
  check_says(why(verl({"reward_model.enable=true"}), "reward_model.enable"), "docs/plugins/http_reward.md");
  check_says(why(verl({"reward_model.reward_manager=prime"}), "reward_model.reward_manager"),
             "'prime': an environment");
  const Draft overlong = verl({"+reward_model.overlong_buffer.enable=true", "+reward_model.overlong_buffer.len=128",
                               "+reward_model.overlong_buffer.penalty_factor=0.5"});
  is(overlong, "grpo.reward_shaping.overlong_buffer_length", "128");
  is(overlong, "grpo.reward_shaping.max_response_length", "512");
  check_says(why(verl({"data.truncation=left"}), "data.truncation"),
             "left: a prompt that is too long is cut at its end");
}

TEST_CASE("the length of a run, checkpoints, logs and machines") {
  const Draft draft =
      verl({"trainer.total_epochs=5", "trainer.save_freq=20", "trainer.test_freq=10", "trainer.nnodes=2",
            "trainer.max_actor_ckpt_to_keep=3", "trainer.logger=[console, tensorboard, swanlab, mlflow, clearml]",
            "trainer.project_name=p", "trainer.experiment_name=e", "trainer.resume_mode=disable"});
  is(draft, "grpo.max_num_epochs", "5");
  is(draft, "checkpointing.save_period", "20");
  is(draft, "checkpointing.checkpoint_dir", "\"checkpoints/p/e\"");
  is(draft, "checkpointing.keep_top_k", "3");
  is(draft, "checkpointing.resume_if_exists", "false");
  is(draft, "grpo.val_period", "10");
  is(draft, "cluster", R"({"gpus_per_node":8,"num_nodes":2})");
  is(draft, "logger.tensorboard_enabled", "true");
  is(draft, "logger.swanlab_enabled", "true");
  is(draft, "logger.swanlab", R"({"project":"p","name":"e"})");
  is(draft, "logger.mlflow", R"({"experiment_name":"p","run_name":"e"})");
  check_says(why(draft, "trainer.logger"), "clearml: what there is instead is in docs/trackers.md");
  const Draft silent = verl({"data.val_files=null"});
  is(silent, "grpo.val_period", "0");
  is(silent, "grpo.val_at_start", "false");
  is(silent, "checkpointing.enabled", "false");
  check_says(why(verl({"trainer.resume_mode=resume_path"}), "trainer.resume_from_path"), "the newest checkpoint");
}

TEST_CASE("a whole dump is read: references, _target_, and what stands at verl's defaults is not named") {
  const Draft draft = verl({}, R"(
actor_rollout_ref:
  actor:
    _target_: verl.workers.config.FSDPActorConfig
    ppo_mini_batch_size: 64
    loss_agg_mode: token-mean
    checkpoint: {save_contents: [model], load_contents: "${.save_contents}"}
    policy_loss: {_target_: verl.workers.config.PolicyLossConfig, loss_mode: vanilla, ppo_kl_coef: 0.1}
    new_switch: 3
  ref: {log_prob_micro_batch_size_per_gpu: 4, strategy: "${actor_rollout_ref.actor.strategy}"}
  rollout:
    name: ???
    'n': 4
    prompt_length: ${oc.select:data.max_prompt_length,512}
    engine_kwargs: {vllm: {}}
data: {train_batch_size: 64, custom_cls: {path: null}}
algorithm: {adv_estimator: grpo, lam: 0.95}
critic: {ppo_epochs: 2}
)");
  is(draft, "policy.train_global_batch_size", "256");
  std::vector<std::string> named;
  for (const auto& each : draft.left_out()) named.push_back(each.key);
  CHECK(named ==
        std::vector<std::string>{kRollout + "val_kwargs.temperature", "data.reward_fn_key", kActor + "new_switch"});
  check_says(why(draft, kActor + "new_switch"), "no such setting");
}

TEST_CASE("wrong types and sizes of verl's are refused by place and name") {
  CHECK(refused({kActor + "ppo_mini_batch_size=100"}) ==
        "override 'actor_rollout_ref.actor.ppo_mini_batch_size=100': actor_rollout_ref.actor.ppo_mini_batch_size: got "
        "100, "
        "wanted a divisor of data.train_batch_size 1024: both count prompts");
  check_says(refused({}, "data: {train_batch_size: x}\n"),
             "verl.yaml:1:8: data.train_batch_size: got text 'x', wanted a");
  check_says(refused({kActor + "ppo_micro_batch_size=12"}), "got 12, wanted a multiple of the 8 GPUs");
  check_says(refused({"actor_rollout_ref.model.path=null"}), "actor_rollout_ref.model.path: is missing, wanted text");
  check_says(refused({}, "actor_rollout_ref: 3\n"), "actor_rollout_ref");
  check_says(refused({}, "trainer: [1]\n"), "trainer");
  check_says(refused({}, "data: {train_files: [1]}\n"), "data.train_files: got int 1 in the list, wanted texts");
  check_says(refused({kActor + "use_kl_loss=1"}), "use_kl_loss: got int 1, wanted true or false");
  check_says(refused({}, "data: {train_batch_size: \"${nowhere}\"}\n"), "nowhere");
}
