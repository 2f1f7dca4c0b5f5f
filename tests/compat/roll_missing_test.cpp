// What ROLL's files ask for and this program lacks: one line a capability. What means nothing: one line a reason.
#include "compat/roll/key_names.hpp"
#include "tests/compat/roll_file.hpp"

#include <algorithm>

using namespace compat_test;
using hexad::config::Resolved;

namespace {

int64_t lines(const std::string& text) { return text.empty() ? 0 : std::ranges::count(text, '\n') + 1; }

// The one error, and nothing else, that the overrides bring about.
void refuses(const Overrides& overrides, const std::string& keys, const std::string& capability,
             const std::string& text = kRollFile) {
  const std::string error = resolve_error(overrides, text);
  CAPTURE(error);
  CHECK(lines(error) == 1);
  check_says(error, "error: " + keys + ": " + capability + " is not available in this version");
}

}  // namespace

TEST_CASE("keys share what they have in common") {
  using hexad::config::roll::key_names;
  CHECK(key_names({"a"}) == "a");
  CHECK(key_names({"a", "b.c"}) == "a, b.c");
  CHECK(key_names({"r.x.one", "r.x.two", "s"}) == "r.x.{one, two}, s");
  CHECK(key_names({"r.x.one", "r.x.two", "r.y.one", "r.y.two", "r.z.one"}) == "r.{{x, y}.{one, two}, z.one}");
  CHECK(key_names({"a", "a.b"}) == "a, a.b");
  CHECK(key_names({"a.b", "a.b"}) == "a.b");
  CHECK(key_names({}) == "");
}

TEST_CASE("a capability that several keys ask for is one line with all of them") {
  refuses({"++actor_train.model_args.lora_target=all", "++actor_train.model_args.lora_rank=8",
           "++actor_infer.model_args.lora_target=all"},
          "actor_train.model_args.{lora_target, lora_rank}, actor_infer.model_args.lora_target", "LoRA");
  refuses({"++pg_variant=topr", "++actor_train.pg_variant=topr", "++use_topr_loss=true"},
          "actor_train.pg_variant, pg_variant, use_topr_loss", "the TOPR loss");
  refuses(
      {"++actor_train.data_args.image_max_pixels=1000", "++actor_train.model_args.freeze_module_prefix=vision_model",
       "++rewards.math_rule.worker_cls=DetectionRewardWorker"},
      "rewards.math_rule.worker_cls, actor_train.{data_args.image_max_pixels, model_args.freeze_module_prefix}",
      "a model that sees or hears (images, video or audio in prompts)");
  refuses({"++actor_train.model_args.freeze_module_prefix=lm_head"}, "actor_train.model_args.freeze_module_prefix",
          "freezing parts of the model");
  refuses({"++rl_loss_coef=0.0", "++postive_loss_coef=0.5"}, "rl_loss_coef, postive_loss_coef",
          "a loss of its own for positive samples");
  // Two capabilities, two lines.
  CHECK(lines(resolve_error({"++actor_train.model_args.lora_target=all", "++entropy_loss_coef=0.1"}, kRollFile)) == 2);
}

TEST_CASE("a class that trains in Python is another loss") {
  const std::string worker = "++actor_train.worker_cls=roll.pipeline.rlvr.actor_pg_worker.ActorPGWorker";
  refuses({worker}, "actor_train.worker_cls", "the plain policy gradient (pg_variant: vanilla)");
  CHECK(resolve_error({worker, "++pg_variant=ppo"}, kRollFile) == "");
  CHECK(resolve_error({"++actor_train.worker_cls=roll.pipeline.rlvr.actor_worker.ActorWorker"}, kRollFile) == "");
  refuses({"++actor_train.worker_cls=mine.OwnWorker"}, "actor_train.worker_cls", "a worker in Python (OwnWorker)");
}

TEST_CASE("a critic is named with all that belongs to it, and those keys are told nowhere else") {
  const std::string error = resolve_error(
      {"adv_estimator=gae", "++critic={model_args: {dtype: bf16}}", "++value_clip=0.5", "++lambd=0.95"}, kRollFile);
  CHECK(lines(error) == 1);
  check_says(
      error,
      "adv_estimator, critic, value_clip, lambd: a critic (adv_estimator: gae) is not available in this version; "
      "nearest: adv_estimator: grpo or reinforce");
}

TEST_CASE("each reward that is missing is a line, and nothing else is said of its block") {
  const std::string domains = R"(  code:
    worker_cls: roll.pipeline.rlvr.rewards.code_sandbox_reward_worker.CodeSandboxRewardWorker
    use_local: true
    world_size: 8
  judge: {worker_cls: roll.x.LLMJudgeRewardWorker, judge_prompt: p}
)";
  const std::string error = resolve_error({}, kRollFile + domains);
  CHECK(lines(error) == 3);
  check_says(error, "rewards.code.worker_cls: a reward that runs code (CodeSandboxRewardWorker) is not available");
  check_says(error,
             "rewards.judge.worker_cls: a reward by a model that judges (LLMJudgeRewardWorker) is not available");
  check_says(error,
             "rewards.{math_rule, code, judge}.worker_cls: a reward chosen by the tag of a row is not available");
  // A domain without a share is not used, and no error.
  const Resolved resolved = resolve_text(
      {"++actor_train.data_args.domain_interleave_probs={math_rule: 1.0, code: 0.0}"}, kRollFile + domains);
  CHECK(tells(resolved, "use_local", "not read: no part of this run takes it"));
  refuses({"++rewards.math_rule.worker_cls=a.b.OwnRewardWorker"}, "rewards.math_rule.worker_cls",
          "the reward OwnRewardWorker");
}

TEST_CASE("domains of one reward are drawn from alike, which is said") {
  const Resolved resolved =
      resolve_text({"++rewards.physics={worker_cls: MathRuleRewardWorker, tag_included: [p]}",
                    "++rewards.math_rule.tag_included=[m]",
                    "++actor_train.data_args.domain_interleave_probs={math_rule: 0.9, physics: 0.1}"},
                   kRollFile);
  CHECK(tells(resolved, "domain_interleave_probs", "shares are not kept: prompts are drawn from all rows"));
  CHECK(has_notice(resolved, "rewards.{math_rule, physics}.tag_included", "every row of the files trains"));
}

TEST_CASE("what means nothing here is one line for each reason, with all its keys") {
  const Resolved resolved = resolve_text(
      {"++actor_infer.model_args.dtype=bf16", "++actor_infer.infer_batch_size=1", "++rewards.math_rule.world_size=8",
       "++rewards.math_rule.infer_batch_size=1", "++actor_train.model_args.flash_attn=fa2",
       "++actor_infer.model_args.flash_attn=fa2", "++reference.model_args.attn_implementation=fa2"},
      kRollFile);
  CHECK(has_notice(resolved,
                   "actor_infer.{model_args.dtype, infer_batch_size}, rewards.math_rule.{world_size, infer_batch_size}",
                   "not read: no part of this run takes it"));
  CHECK(has_notice(resolved,
                   "{actor_train, actor_infer}.model_args.flash_attn, reference.model_args.attn_implementation",
                   "the model and its kernels are this engine's own"));
  std::vector<std::string> messages;
  for (const auto& notice : resolved.notices) messages.push_back(notice.message);
  std::ranges::sort(messages);
  CHECK(std::ranges::adjacent_find(messages) == messages.end());
}

TEST_CASE("keys that ROLL itself reads no more refuse nothing") {
  const Resolved resolved = resolve_text(
      {"++reward_norm=batch", "++reward_shift=true", "++actor_train.data_args.dataset_dir=data"}, kRollFile);
  CHECK(has_notice(resolved, "reward_norm, reward_shift", "ROLL reads this key no more"));
  CHECK(has_notice(resolved, "actor_train.data_args.dataset_dir", "ROLL reads this key nowhere"));
  CHECK(resolved.root.as_bool("grpo.adv_estimator.normalize_rewards"));
}

TEST_CASE("asynchronous generation comes to asynchronous GRPO") {
  const Overrides apart = {"++async_generation_ratio=1", "actor_infer.device_mapping='list(range(4,8))'"};
  const Resolved resolved = resolve_text(apart, kRollFile);
  CHECK(resolved.root.as_bool("grpo.async_grpo.enabled"));
  CHECK(resolved.root.as_int("grpo.async_grpo.max_trajectory_age_steps") == 1);
  CHECK(resolved.root.as_bool("grpo.async_grpo.in_flight_weight_updates"));
  CHECK(resolved.root.as_bool("grpo.async_grpo.recompute_kv_cache_after_weight_updates"));
  CHECK(resolved.root.as_bool("loss_fn.use_importance_sampling_correction"));
  CHECK(has_notice(resolved, "async_generation_ratio", "tokens are weighted by exp(trainer's - generator's log-prob)"));
  Overrides more = apart;
  more[0] = "++async_generation_ratio=1.5";
  more.push_back("++train_infer_correction={is_weight: {enabled: true, upper_bound: 2.0}}");
  const Resolved older = resolve_text(more, kRollFile);
  CHECK(older.root.as_int("grpo.async_grpo.max_trajectory_age_steps") == 2);
  CHECK(older.root.as_double("loss_fn.truncated_importance_sampling_ratio") == 2.0);
  CHECK(has_notice(older, "async_generation_ratio", "samples may be 2 steps old"));
  CHECK(!has_notice(older, "async_generation_ratio", "tokens are weighted"));
  more[0] = "++async_generation_ratio=0.5";
  check_says(resolve_error(more, kRollFile), "async_generation_ratio: got 0.5, wanted 0 or at least 1, as ROLL does");
  refuses({"++async_generation_ratio=1"}, "async_generation_ratio", "asynchronous generation on devices that train");
  CHECK(!resolve_text({"++async_generation_ratio=0"}, kRollFile).root.as_bool("grpo.async_grpo.enabled"));
}

TEST_CASE("rollouts are written down anyway, and never read in") {
  CHECK(has_notice(resolve_text({"++rollout_mock={enable: true, mode: dump, dump_dir: d}"}, kRollFile), "rollout_mock",
                   "the samples of every step are in the log folder"));
  refuses({"++rollout_mock={enable: true, mode: mock}"}, "rollout_mock.mode", "training on rollouts of an earlier run");
}

TEST_CASE("devices that do not make whole nodes are one line") {
  refuses({"actor_train.device_mapping='[0,1,2,3,8,9,10,11]'", "actor_infer.device_mapping='[4,5,12,13]'"},
          "{actor_train, actor_infer}.device_mapping", "a run on parts of several nodes");
}
