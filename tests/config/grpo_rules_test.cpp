// What the keys of `grpo` ask of each other: messages, and a valid neighbour of each.
#include "tests/config/support.hpp"

using namespace config_test;

TEST_CASE("a metric that ends the run needs its threshold") {
  const std::string metric = "++grpo.stop_at_validation_metric=accuracy";
  check_says(resolve_error({metric}), "grpo.stop_at_validation_metric: needs grpo.stop_at_validation_threshold");
  CHECK(resolve_error({metric, "++grpo.stop_at_validation_threshold=0.9"}) == "");
}

TEST_CASE("bounds stand in their order") {
  const std::string low = "++grpo.advantage_clip_low=", high = "++grpo.advantage_clip_high=";
  check_says(resolve_error({low + "2", high + "1"}),
             "grpo.advantage_clip_low: got 2, wanted at most "
             "grpo.advantage_clip_high, which is 1");
  CHECK(resolve_error({low + "1", high + "1"}) == "");
  const std::string scaling = "++grpo.reward_scaling.enabled=true", least = "++grpo.reward_scaling.source_min=";
  check_says(resolve_error({scaling, least + "1"}),
             "grpo.reward_scaling.source_min: got 1, wanted less than grpo.reward_scaling.source_max, which is 1");
  CHECK(resolve_error({scaling, least + "0.5"}) == "");
  CHECK(resolve_error({least + "1"}) == "");  // not scaled
}

TEST_CASE("the reference policy is there where the KL is taken from it") {
  const std::string skip = "++grpo.skip_reference_policy_logprobs_calculation=true",
                    penalty = "++loss_fn.reference_policy_kl_penalty=";
  check_says(resolve_error({skip, penalty + "0.01"}), "needs loss_fn.reference_policy_kl_penalty: 0");
  CHECK(resolve_error({skip, penalty + "0"}) == "");
}

TEST_CASE("dynamic sampling: groups of several samples, in a synchronous run; more prompts at once with it alone") {
  const std::string dynamic = "++grpo.use_dynamic_sampling=true";
  CHECK(resolve_error({dynamic, "++grpo.batch_multiplier=2.5"}) == "");
  check_says(
      resolve_error({"++grpo.batch_multiplier=2"}),
      "grpo.batch_multiplier: needs grpo.use_dynamic_sampling: a step trains on grpo.num_prompts_per_step prompts");
  check_says(resolve_error({dynamic, "++grpo.batch_multiplier=0.5"}), "grpo.batch_multiplier");
  check_says(resolve_error({dynamic, "++grpo.num_generations_per_prompt=1"}),
             "grpo.use_dynamic_sampling: needs grpo.num_generations_per_prompt above 1: one reward never varies");
  check_says(resolve_error({dynamic, "++grpo.async_grpo.enabled=true"}),
             "grpo.use_dynamic_sampling: does not go with grpo.async_grpo: its groups belong to a step before their "
             "rewards are known");
}

TEST_CASE("a sample alone in its group gets no advantage from its reward, and is told of") {
  const std::string one = "++grpo.num_generations_per_prompt=1", size = "++policy.train_global_batch_size=32",
                    key = "grpo.num_generations_per_prompt", name = "++grpo.adv_estimator.name=";
  for (const char* estimator : {"grpo", "gdpo", "reinforce_plus_plus"})
    CHECK(has_notice(resolve_text({one, size, name + estimator}), key, "is its own baseline"));
  const std::string raw = "++grpo.adv_estimator.minus_baseline=false";
  CHECK_FALSE(has_notice(resolve_text({one, size, name + "reinforce_plus_plus", raw}), key, "is its own baseline"));
  CHECK_FALSE(has_notice(resolve_text({}), key, "is its own baseline"));
}

TEST_CASE("what is trained on otherwise than in NeMo-RL is said, where the configuration makes a difference") {
  const std::string dynamic = "++grpo.use_dynamic_sampling=true",
                    each = "++grpo.use_leave_one_out_baseline=", key = "grpo.use_dynamic_sampling",
                    words = "(compat.dynamic_sampling_by_sample: true)";
  CHECK(has_notice(resolve_text({dynamic}), key, words));
  CHECK_FALSE(has_notice(resolve_text({dynamic, each + "false"}), key, words));
  CHECK_FALSE(has_notice(resolve_text({each + "true"}), key, words));
  CHECK_FALSE(has_notice(resolve_text({dynamic, "++compat.dynamic_sampling_by_sample=true"}), key, words));
  const std::string vote = "++compat.filtered_samples_vote=true", said = "(compat.filtered_samples_vote: true)";
  const Overrides raw = {"++grpo.adv_estimator.name=reinforce_plus_plus", "++grpo.adv_estimator.minus_baseline=false"};
  for (const auto& [filter, value] :
       {std::pair{"grpo.overlong_filtering", "=true"}, std::pair{"grpo.seq_logprob_error_threshold", "=2"}}) {
    const std::string filters = std::string("++") + filter + value;
    CHECK(has_notice(resolve_text({filters}), filter, said));
    CHECK(has_notice(resolve_text({filters, raw[0]}), filter, said));
    CHECK_FALSE(has_notice(resolve_text({filters, vote}), filter, said));
    CHECK_FALSE(has_notice(resolve_text({filters, raw[0], raw[1]}), filter, said));
    CHECK_FALSE(has_notice(resolve_text({}), filter, said));
  }
  const std::string weight = "loss_fn.positive_example_nll_weight", mean = "is of a mean over the whole global batch";
  CHECK(has_notice(resolve_text({"++" + weight + "=0.1"}), weight, mean));
  CHECK_FALSE(has_notice(resolve_text({"++" + weight + "=0"}), weight, mean));
  const std::string ratios = "loss_fn.sequence_level_importance_ratios", grows = "it grows with the rows of a padded";
  const Overrides gspo = {"++" + ratios + "=true", "++loss_fn.token_level_loss=false"};
  CHECK(has_notice(resolve_text(gspo), ratios, grows));
  CHECK_FALSE(has_notice(resolve_text({gspo[0], gspo[1], "++policy.sequence_packing.enabled=true"}), ratios, grows));
  CHECK_FALSE(has_notice(resolve_text({}), ratios, grows));
}

TEST_CASE("what the estimator or the loss does not look at is said") {
  const std::string weights = "grpo.adv_estimator.reward_weights", shaping = "grpo.reward_shaping.enabled",
                    gdpo = "++grpo.adv_estimator.name=gdpo", none = "no effect";
  CHECK(has_notice(resolve_text({"++" + weights + "=[1, 0.2]"}), weights, none));
  CHECK_FALSE(has_notice(resolve_text({"++" + weights + "=[1, 0.2]", gdpo}), weights, none));
  CHECK_FALSE(has_notice(resolve_text({"++" + weights + "=null"}), weights, none));
  CHECK(has_notice(resolve_text({"++" + shaping + "=true", gdpo}), shaping, none));
  CHECK_FALSE(has_notice(resolve_text({"++" + shaping + "=true"}), shaping, none));
  CHECK_FALSE(has_notice(resolve_text({gdpo}), shaping, none));
  const std::string bound = "loss_fn.truncated_importance_sampling_ratio";
  const Overrides corrected = {"++" + bound + "=2", "++loss_fn.use_importance_sampling_correction=true"};
  CHECK(has_notice(resolve_text(corrected), bound, none));
  CHECK_FALSE(has_notice(resolve_text({corrected[0], corrected[1], "++loss_fn.truncated_importance_sampling_type=tis"}),
                         bound, none));
  CHECK_FALSE(has_notice(resolve_text({"++" + bound + "=null"}), bound, none));
}

TEST_CASE("penalties are told what they look for") {
  const std::string at = "++reward_penalties.", ids = at + "token_ids.";
  check_says(
      resolve_error({at + "penalize_unwanted_tokens=true"}),
      "reward_penalties.penalize_unwanted_tokens: needs reward_penalties.token_ids.unwanted: the tokens that are "
      "unwanted");
  CHECK(resolve_error({at + "penalize_unwanted_tokens=true", ids + "unwanted=[3,4]"}) == "");
  CHECK(resolve_error({at + "penalize_unwanted_tokens=true", ids + "unwanted=3"}) == "");
  check_says(resolve_error({ids + "think_open=3"}),
             "reward_penalties.token_ids: think_open and think_close go together: one of them is missing");
  CHECK(resolve_error({ids + "think_open=3", ids + "think_close=4"}) == "");
  check_says(resolve_error({at + "thinking_tags=[a]"}),
             "reward_penalties.thinking_tags: got 1 texts, wanted two: what opens reasoning, and what closes it");
}

TEST_CASE("several turns: of lengths that are sampled") {
  const std::string turns = "++grpo.max_rollout_turns=3";
  CHECK(resolve_error({turns}) == "");
  check_says(resolve_error({turns, "++policy.generation.imposed_lengths=[1,2]"}),
             "grpo.max_rollout_turns: above 1 does not go with policy.generation.imposed_lengths, which are of one "
             "response a sample");
}

TEST_CASE("training samples at a temperature above 0") {
  check_says(
      resolve_error({"++policy.generation.temperature=0"}),
      "policy.generation.temperature: got 0, wanted above 0: training divides logits by it, and samples that are "
      "all the same teach nothing");
  check_says(resolve_error({"++policy.generation.temperature=-1"}), "policy.generation.temperature");
}

TEST_CASE("training samples from more than one token") {
  check_says(resolve_error({"++policy.generation.top_k=1"}),
             "policy.generation.top_k: got 1, wanted above 1 or null: of one token that is left the log-prob is 0 in "
             "training, and has no gradient");
  for (const char* all : {"2", "0", "-1", "null"})
    CHECK(resolve_error({std::string("++policy.generation.top_k=") + all}) == "");
}

TEST_CASE("a validation set has a name, or a path that it takes over") {
  check_says(resolve_error({"data.validation={env_name: math}"}),
             "error: data.validation: has no dataset_name; null is no validation set");
  check_says(resolve_error({"data.validation=[{dataset_name: puzzle}, {split: test}]"}),
             "error: data.validation.1: has no dataset_name");
  CHECK(resolve_error({"data.validation=null"}) == "");
  CHECK(resolve_error({"data.validation={dataset_name: puzzle}"}) == "");
  CHECK(resolve_error({"data.validation={split: test}", "data.default.dataset_name=puzzle"}) == "");
}

TEST_CASE("a dataset names no column that it does not read") {
  const auto says = [](const std::string& set) {
    return resolve_error({"data.train={data_path: d.jsonl, " + set + "}"});
  };
  check_says(
      says("dataset_name: openai_format, input_key: q"),
      "data.train.input_key: got text 'q', and dataset_name: openai_format does not read it; ResponseDataset does");
  check_says(
      says("dataset_name: ResponseDataset, chat_key: prompt"),
      "data.train.chat_key: got text 'prompt', and dataset_name: ResponseDataset does not read it; openai_format "
      "does");
  check_says(says("dataset_name: mine, tool_key: functions"), "data.train.tool_key: got text 'functions'");
  check_says(
      says("dataset_name: PreferenceDataset, output_key: a"),
      "data.train.output_key: got text 'a', and dataset_name: PreferenceDataset does not read it; ResponseDataset "
      "or openai_format does");
  check_says(resolve_error({"data.validation=[{dataset_name: arithmetic}, {dataset_name: arithmetic, output_key: a}]"}),
             "data.validation.1.output_key: got text 'a'");
  for (const char* set : {"dataset_name: openai_format, chat_key: prompt, output_key: solution, tool_key: t",
                          "dataset_name: mine, input_key: q, output_key: a",
                          "dataset_name: BinaryPreferenceDataset, prompt_key: p, output_key: null"})
    CHECK(says(set) == "");
  CHECK(resolve_error({"data.default={output_key: a, chat_key: c}"}) == "");
}
