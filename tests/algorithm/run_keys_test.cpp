// Keys by what a run leaves: two runs that differ in one key alone leave other numbers, samples, files or errors. Whole
// runs in this process on the toy plugins; what a key means exactly is for the tests of the part that reads it.
#include <regex>

#include "core/algorithm/run/train_run.hpp"
#include "tests/support/toy/supervised.hpp"

using namespace hexad;
using plugin_test::Json;

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// A run with `key: one` and a run with `key: other`, both beside the overrides of `beside`.
struct KeyCase {
  std::string key, one, other;
  Strings beside = {};
};

bool is_time(const std::string& metric) {
  return metric == "time" || metric.starts_with("timing/") || metric.starts_with("performance/");
}

std::string metrics_of(const fs::path& file) {
  std::string text;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    Json kept = Json::object();
    const Json all = Json::parse(line);
    for (const auto& [metric, value] : all.items()) {
      if (!is_time(metric)) kept[metric] = value;
    }
    text += kept.dump() + "\n";
  }
  return text;
}

// Without what differs between any two runs: process ids, addresses and times in names of files.
std::string name_of_file(const std::string& path) { return std::regex_replace(path, std::regex("[0-9]{5,}.*$"), "N"); }

// Numbers, samples and names of files below the folder.
std::string left_in(const fs::path& folder) {
  std::set<std::string> names;
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    names.insert(name_of_file(fs::relative(entry.path(), folder).string()));
  }
  for (const std::string& name : names) {
    text += name + "\n";
    if (name.ends_with("metrics.jsonl")) text += metrics_of(folder / name);
    if (name.find("train_data") != name.npos || name.ends_with(".trace")) text += plugin_test::read_text(folder / name);
  }
  return text;
}

// What a run leaves, its error included. "DIR" in an override is its folder.
std::string left_by(const std::string& config, const toy::TempDir& dir, const Strings& overrides) {
  Strings filled;
  for (const std::string& text : overrides)
    filled.push_back(std::regex_replace(text, std::regex("DIR"), dir.path().string()));
  const std::string error = plugin_test::error_of([&] {
    algorithm::Interruption interruption;
    algorithm::train(config::resolve(dir.write("run.yaml", config), filled), {}, interruption);
  });
  return std::regex_replace(error, std::regex(dir.path().string()), "DIR") + "\n" + left_in(dir.path());
}

using ConfigText = std::string (*)(const toy::TempDir& dir);

std::string left_with(ConfigText config, const KeyCase& row, const std::string& value) {
  const toy::TempDir dir;
  Strings overrides = row.beside;
  overrides.push_back("++" + row.key + "=" + value);
  return left_by(config(dir), dir, overrides);
}

// The first value's run ends well.
void check_each(ConfigText config, const std::vector<KeyCase>& rows) {
  for (const KeyCase& row : rows) {
    const std::string one = left_with(config, row, row.one);
    CHECK_MESSAGE(one.starts_with("(no error)"), row.key << ": " << row.one << ": " << one.substr(0, one.find('\n')));
    CHECK_MESSAGE((one != left_with(config, row, row.other)), row.key);
  }
  const KeyCase none = {"checkpointing.save_period", "2", "2"};
  CHECK_MESSAGE((left_with(config, none, none.one) == left_with(config, none, none.other)), "two equal runs");
}

// Three steps whose policy is not that of the samples: several updates a step, and a loss with all of its terms.
std::string clipped_pg(const toy::TempDir& dir) {
  std::string text = toy::config_text(dir.path());
  const auto put = [&](const std::string& old, const std::string& now) {
    REQUIRE(text.find(old) != text.npos);
    text.replace(text.find(old), old.size(), now);
  };
  put("plugin: ppo_clip_c\n  reference_policy_kl_penalty: 0.0",
      "plugin: clipped_pg\n  reference_policy_kl_penalty: 0.1");
  put("max_num_steps: 6", "max_num_steps: 3");
  put("train_global_batch_size: 64", "train_global_batch_size: 16");
  return text;
}

std::string grpo(const toy::TempDir& dir) { return toy::config_text(dir.path()); }

// Samples of three turns, most of whose responses the limit of tokens cuts off.
std::string three_turns(const toy::TempDir& dir) {
  const fs::path program = dir.write("talk.py",
                                     "import json, sys\n"
                                     "for line in sys.stdin:\n"
                                     "    id = json.loads(line)['id']\n"
                                     "    print(json.dumps({'id': id, 'reward': id % 2, 'reply': 'a'}), flush=True)\n");
  std::string text = toy::config_text(dir.path());
  const auto put = [&](const std::string& old, const std::string& now) {
    text = std::regex_replace(text, std::regex(old), now);
  };
  put("env_name: exact_answer", "env_name: talk");
  put("env: .*", fmt::format("env: {{talk: {{command: [python3, {}]}}}}", program.string()));
  put("grpo:", "grpo:\n  max_rollout_turns: 3");
  put("max_num_steps: 6", "max_num_steps: 1");
  put("max_total_sequence_length: 16", "max_total_sequence_length: 40");
  return text;
}
std::string sft(const toy::TempDir& dir) { return toy::supervised_config_text("sft", dir); }
std::string dpo(const toy::TempDir& dir) { return toy::supervised_config_text("dpo", dir); }
std::string rm(const toy::TempDir& dir) {
  return std::regex_replace(toy::supervised_config_text("rm", dir), std::regex("backend: toy_backend"),
                            "backend: toy_backend\n  plugin_config: {reward_head: 1}");
}

// Conversations of two answers each.
std::string chats(const toy::TempDir& dir) {
  const std::string text = sft(dir);
  std::string lines;
  for (int i = 0; i < 8; ++i) {
    const std::string letter(1, static_cast<char>('a' + i));
    Json messages = Json::array();
    for (const char* role : {"user", "assistant", "user", "assistant"})
      messages.push_back({{"role", role}, {"content", letter}});
    lines += Json{{"messages", messages}}.dump() + "\n";
  }
  dir.write("data.jsonl", lines);
  return std::regex_replace(text, std::regex("ResponseDataset"), "openai_format");
}

}  // namespace

TEST_CASE("keys of grpo and of penalties, by what a run leaves") {
  const Strings scaled = {"grpo.reward_scaling.enabled=true"}, shaped = {"grpo.reward_shaping.enabled=true"},
                tags = {"++reward_penalties.thinking_tags=[a,b]", "policy.generation.max_new_tokens=6"},
                parts = {
                    "++grpo.adv_estimator.name=gdpo",
                    "env={exact_answer: {rewards: [{name: exact_answer}, {name: length, full_at: 1, none_at: 3}]}}"};
  const auto with = [](Strings list, const std::string& more) { return list.push_back(more), list; };
  const Strings reinforce = {"++grpo.adv_estimator.name=reinforce_plus_plus"};
  check_each(grpo, {{"grpo.max_num_epochs", "1", "2", {"grpo.max_num_steps=100"}},
                    {"grpo.seed", "3", "4"},
                    {"grpo.advantage_clip_low", "null", "-0.1"},
                    {"grpo.advantage_clip_high", "null", "0.1"},
                    {"grpo.overlong_filtering", "false", "true"},
                    {"compat.filtered_samples_vote",
                     "false",
                     "true",
                     {"grpo.overlong_filtering=true", "data.train.env_name=token_task"}},
                    {"compat.dynamic_sampling_by_sample",
                     "false",
                     "true",
                     {"grpo.use_dynamic_sampling=true", "grpo.max_num_steps=1"}},
                    {"grpo.use_leave_one_out_baseline", "true", "false"},
                    {"grpo.adv_estimator.name", "grpo", "reinforce_plus_plus"},
                    {"grpo.adv_estimator.minus_baseline", "true", "false", reinforce},
                    {"grpo.adv_estimator.use_leave_one_out_baseline", "true", "false"},
                    {"grpo.max_nonfinite_steps",
                     "3",
                     "2",
                     {"++policy.plugin_config={fault: 'train@0:nan'}", "grpo.max_num_steps=2"}},
                    {"grpo.normalize_rewards", "true", "false"},
                    {"grpo.adv_estimator.normalize_rewards", "true", "false"},
                    {"grpo.adv_estimator.reward_weights", "[1,0]", "[0,1]", parts},
                    {"grpo.seq_logprob_error_threshold", "2", "0.5"},
                    {"grpo.reward_scaling.enabled", "false", "true", {"++grpo.reward_scaling.target_max=2"}},
                    {"grpo.reward_scaling.source_min", "0", "-1", scaled},
                    {"grpo.reward_scaling.source_max", "1", "2", scaled},
                    {"grpo.reward_scaling.target_min", "0", "-1", scaled},
                    {"grpo.reward_scaling.target_max", "1", "2", scaled},
                    {"grpo.reward_shaping.enabled", "false", "true", {"grpo.reward_shaping.max_response_length=2"}},
                    {"grpo.reward_shaping.overlong_buffer_length", "1", "2",
                     with(shaped, "grpo.reward_shaping.max_response_length=3")},
                    {"grpo.reward_shaping.overlong_buffer_penalty", "0.5", "1",
                     with(shaped, "grpo.reward_shaping.max_response_length=2")},
                    {"grpo.reward_shaping.max_response_length", "2", "100", shaped},
                    {"grpo.reward_shaping.stop_properly_penalty_coef", "0.5", "0",
                     with(shaped, "policy.generation.max_new_tokens=1")},
                    {"reward_penalties.penalize_duplicated_reasoning", "false", "true", tags},
                    {"reward_penalties.penalize_empty_final_answer", "false", "true", tags},
                    {"reward_penalties.thinking_tags",
                     "[a,b]",
                     "[b,c]",
                     {"++reward_penalties.penalize_empty_final_answer=true", tags[1]}}});
}

TEST_CASE("keys of several turns, by what a run leaves") {
  check_each(three_turns, {{"grpo.truncated_response_ends_sample", "false", "true"}});
}

TEST_CASE("keys of the loss, by what a run leaves") {
  const std::string correction = "++loss_fn.use_importance_sampling_correction=true",
                    tis = "++loss_fn.truncated_importance_sampling_type=tis",
                    icepop = "++loss_fn.truncated_importance_sampling_type=icepop",
                    least = "++loss_fn.truncated_importance_sampling_ratio_min=0.1",
                    most = "++loss_fn.truncated_importance_sampling_ratio=";
  check_each(clipped_pg,
             {{"loss_fn.reference_policy_kl_penalty", "0.1", "0"},
              {"loss_fn.reference_policy_kl_type", "k3", "k1"},
              {"loss_fn.kl_input_clamp_value", "20", "0.001"},
              {"loss_fn.kl_output_clamp_value", "10", "0.0001"},
              {"loss_fn.ratio_clip_min", "0.2", "0.0001"},
              {"loss_fn.ratio_clip_max", "0.2", "0.0001"},
              {"loss_fn.ratio_clip_c", "null", "1.0001"},
              {"loss_fn.token_level_loss", "true", "false"},
              {"loss_fn.use_importance_sampling_correction",
               "false",
               "true",
               {"++policy.generation.plugin_config={bias: 0.1}"}},
              {"loss_fn.use_on_policy_kl_approximation", "false", "true"},
              {"loss_fn.truncated_importance_sampling_type", "tis", "icepop", {correction, least, most + "0.5"}},
              {"loss_fn.truncated_importance_sampling_ratio", "2", "0.5", {correction, tis}},
              {"loss_fn.truncated_importance_sampling_ratio_min", "0.5", "1.5", {correction, icepop, most + "2"}},
              {"loss_fn.sequence_level_importance_ratios", "false", "true", {"loss_fn.token_level_loss=false"}},
              {"loss_fn.force_on_policy_ratio", "false", "true"},
              {"loss_fn.use_kl_in_reward", "false", "true", {"++grpo.adv_estimator.name=reinforce_plus_plus"}},
              {"loss_fn.use_cispo", "false", "true"},
              {"loss_fn.disable_ppo_ratio", "false", "true"},
              {"loss_fn.positive_example_nll_weight", "0", "1"}});
  check_each(
      grpo,
      {{"loss_fn.plugin_config", "{clip_eps: 0.2}", "{clip_eps: 0.0001}", {"policy.train_global_batch_size=16"}}});
}

TEST_CASE("keys of sft, by what a run leaves") {
  check_each(sft, {{"sft.max_num_steps", "6", "4"},
                   {"sft.max_num_epochs", "1", "2", {"sft.max_num_steps=100"}},
                   {"sft.val_period", "0", "2"},
                   {"sft.val_batches", "-1", "1", {"++sft.val_at_end=true"}},
                   {"sft.val_global_batch_size", "4", "8", {"++sft.val_at_end=true", "sft.val_batches=1"}},
                   {"sft.val_at_start", "false", "true"},
                   {"sft.val_at_end", "false", "true"},
                   {"sft.seed", "3", "4"},
                   {"sft.max_nonfinite_steps", "9", "2", {"++policy.plugin_config={fault: 'train@0:nan'}"}},
                   {"sft.val_micro_batch_size",
                    "2",
                    "4",
                    {"++sft.val_at_end=true", "++policy.plugin_config={trace: DIR/toy.trace}"}}});
  check_each(chats, {{"sft.only_unmask_final", "false", "true"}});
  const Strings plain = {"policy.tokenizer.chat_template='{% for m in messages %}{{ m.content }}{% endfor %}'"};
  check_each(sft, {{"data.add_bos", "true", "false", plain}});
}

TEST_CASE("keys of dpo, by what a run leaves") {
  const std::string sft_term = "++dpo.sft_loss_weight=1";
  check_each(dpo, {{"dpo.max_num_steps", "6", "4"},
                   {"dpo.reference_policy_kl_penalty", "0.05", "0.5"},
                   {"dpo.max_num_epochs", "1", "2", {"dpo.max_num_steps=100"}},
                   {"dpo.val_period", "0", "2"},
                   {"dpo.val_batches", "-1", "1", {"++dpo.val_at_end=true"}},
                   {"dpo.val_global_batch_size", "4", "8", {"++dpo.val_at_end=true", "dpo.val_batches=1"}},
                   {"dpo.val_at_start", "false", "true"},
                   {"dpo.val_at_end", "false", "true"},
                   {"dpo.seed", "3", "4"},
                   {"dpo.max_nonfinite_steps", "9", "2", {"++policy.plugin_config={fault: 'train@0:nan'}"}},
                   {"dpo.preference_average_log_probs", "false", "true", {"++dpo.sft_average_log_probs=false"}},
                   {"dpo.sft_average_log_probs", "false", "true", {sft_term}},
                   {"dpo.preference_loss_weight", "1", "0.5"},
                   {"dpo.sft_loss_weight", "0", "1"},
                   {"dpo.val_micro_batch_size",
                    "2",
                    "4",
                    {"++dpo.val_at_end=true", "++policy.plugin_config={trace: DIR/toy.trace}"}}});
}

TEST_CASE("keys of rm, by what a run leaves") {
  check_each(rm, {{"rm.max_num_steps", "6", "4"},
                  {"rm.max_num_epochs", "1", "2", {"rm.max_num_steps=100"}},
                  {"rm.val_period", "0", "2"},
                  {"rm.val_batches", "-1", "1", {"++rm.val_at_end=true"}},
                  {"rm.val_global_batch_size", "4", "8", {"++rm.val_at_end=true", "rm.val_batches=1"}},
                  {"rm.val_at_start", "false", "true"},
                  {"rm.val_at_end", "false", "true"},
                  {"rm.seed", "3", "4"},
                  {"rm.max_nonfinite_steps", "9", "2", {"++policy.plugin_config={fault: 'train@0:nan'}"}},
                  {"rm.val_micro_batch_size",
                   "2",
                   "4",
                   {"++rm.val_at_end=true", "++policy.plugin_config={trace: DIR/toy.trace}"}}});
}

TEST_CASE("keys of checkpoints and logs, by what a run leaves") {
  const Strings every = {"checkpointing.save_period=1", "checkpointing.keep_top_k=1",
                         "checkpointing.metric_name=train:loss"};
  check_each(grpo, {{"checkpointing.checkpoint_dir", "DIR/checkpoints", "DIR/saved"},
                    {"checkpointing.metric_name", "null", "train:loss", {every[0], every[1]}},
                    {"checkpointing.higher_is_better", "true", "false", every},
                    {"checkpointing.save_optimizer", "true", "false"},
                    {"logger.profile_steps", "[]", "[1]"},
                    {"logger.tensorboard_enabled", "false", "true"}});
}

TEST_CASE("keys of optimizer and schedule, by what a run leaves") {
  const Strings trace = {"++policy.plugin_config={trace: DIR/toy.trace}"};
  const auto schedule = [&](const std::string& list) { return Strings{trace[0], "policy.scheduler=" + list}; };
  const std::string linear = "[{name: torch.optim.lr_scheduler.LinearLR, kwargs: {start_factor: 0.5, total_iters: 5}}",
                    constant = ", {name: torch.optim.lr_scheduler.ConstantLR, kwargs: {factor: 1.0, total_iters: 10}}";
  check_each(grpo, {{"policy.optimizer.kwargs.lr", "40", "20", trace},
                    {"policy.scheduler.name", "torch.optim.lr_scheduler.LinearLR",
                     "torch.optim.lr_scheduler.ConstantLR", schedule("{kwargs: {total_iters: 3}}")},
                    {"policy.scheduler.kwargs", "{total_iters: 3}", "{total_iters: 4}",
                     schedule("{name: torch.optim.lr_scheduler.LinearLR}")},
                    {"policy.scheduler", linear + constant + ", {milestones: [2]}]",
                     linear + constant + ", {milestones: [4]}]", trace}});
}

TEST_CASE("keys of sampling, by what a run asks of its generator") {
  const Strings trace = {"++policy.generation.plugin_config={trace: DIR/toy.trace}"};
  const Strings validating = {trace[0], "grpo.val_at_start=true"};
  check_each(grpo, {{"policy.generation.max_new_tokens", "2", "3", trace},
                    {"policy.generation.temperature", "1", "0.5", trace},
                    {"policy.generation.top_p", "1", "0.5", trace},
                    {"policy.generation.top_k", "null", "5", trace},
                    {"policy.generation.min_p", "0", "0.1", trace},
                    {"policy.generation.val_temperature", "1", "0.5", validating},
                    {"policy.generation.val_top_p", "1", "0.5", validating},
                    {"policy.generation.val_top_k", "null", "5", validating}});
}

TEST_CASE("keys of policy and generation, by what a run leaves") {
  const Strings longer = {"policy.generation.max_new_tokens=6"};
  check_each(grpo,
             {{"policy.plugin_config", "{}", "{fault: 'train@1:error'}"},
              {"policy.max_grad_norm", "null", "0.001"},
              {"policy.generation.plugin_config", "{}", "{fault: 'generate@1:error'}"},
              {"policy.generation.stop_token_ids", "null", "[4,5,6,7]", longer},
              {"policy.generation.ignore_eos", "false", "true", longer},
              {"policy.generation.colocated.sleep_level",
               "0",
               "1",
               {"++policy.generation.plugin_config={fault: 'sleep@0:error'}"}},
              {"policy.tokenizer.chat_template", "default", "null"},
              {"policy.tokenizer.chat_template_kwargs",
               "{tail: a}",
               "{tail: b}",
               {"policy.tokenizer.chat_template='{{ messages[0].content }}{{ tail }}'"}},
              {"policy.generation.imposed_lengths", "null", fmt::format("[{}]", fmt::join(std::vector(64, 2), ","))},
              {"data.shuffle", "true", "false"},
              {"env.exact_answer.require_end", "false", "true"}});
}

TEST_CASE("keys of micro-batches, by what a run leaves") {
  const Strings plain = {"policy.generation.max_new_tokens=9", "++policy.plugin_config={trace: DIR/toy.trace}"};
  const auto with = [&](const Strings& more) {
    Strings all = plain;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::string dynamic = "++policy.dynamic_batching.enabled=true",
                    round = "++policy.dynamic_batching.sequence_length_round=2";
  const Strings packed =
      with({"++policy.sequence_packing.enabled=true", "++policy.sequence_packing.train_mb_tokens=64"});
  check_each(grpo, {{"policy.train_micro_batch_size", "16", "8", plain},
                    {"policy.logprob_batch_size", "32", "16", plain},
                    {"policy.dynamic_batching.enabled", "false", "true", with({round})},
                    {"policy.dynamic_batching.train_mb_tokens", "64", "32", with({dynamic, round})},
                    {"policy.dynamic_batching.logprob_mb_tokens", "64", "32", with({dynamic, round})},
                    {"policy.dynamic_batching.sequence_length_round", "2", "16", with({dynamic})},
                    {"policy.sequence_packing.enabled", "false", "true",
                     with({"++policy.sequence_packing.train_mb_tokens=64"})},
                    {"policy.sequence_packing.train_mb_tokens", "64", "32", packed},
                    {"policy.make_sequence_length_divisible_by", "1", "16", packed},
                    {"policy.sequence_packing.logprob_mb_tokens", "64", "32", packed},
                    {"policy.sequence_packing.algorithm", "modified_first_fit_decreasing", "concatenative", packed},
                    {"policy.sequence_packing.microbatch_order", "packer", "largest_first", packed}});
}

TEST_CASE("keys of plugins, by what a run leaves") {
  check_each(grpo, {{"plugins.enabled", "true", "false"},
                    {"plugins.require_verified", "false", "true"},
                    {"plugins.record_dir", "null", "DIR/records"},
                    {"plugins.record_steps", "1", "2", {"++plugins.record_dir=DIR/records"}}});
}
