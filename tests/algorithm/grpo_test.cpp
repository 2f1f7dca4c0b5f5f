// The loop: when it validates, saves and ends. Whole runs in this process on the toy plugins.
#include "core/algorithm/grpo/grpo.hpp"

#include <thread>

#include "core/algorithm/grpo/phases.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::error_of;
using plugin_test::Json;

namespace {

namespace fs = std::filesystem;

struct Run {
  explicit Run(const std::vector<std::string>& overrides, algorithm::TrainOptions options = {}) {
    const config::Resolved resolved = config::resolve(dir.write("toy.yaml", toy::config_text(dir.path())), overrides);
    options.report = [](const fs::path& run_dir) { std::ofstream(run_dir / "report.html") << "a page"; };
    outcome = algorithm::train(resolved, options, interruption);
    std::ifstream in(dir / "logs/exp_001/metrics.jsonl");
    for (std::string line; std::getline(in, line);) steps.push_back(Json::parse(line));
  }
  std::vector<int64_t> steps_with(const std::string& metric) const {
    std::vector<int64_t> found;
    for (const Json& step : steps) {
      if (step.contains(metric)) found.push_back(step.at("step"));
    }
    return found;
  }
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir / "checkpoints")) {
      if (entry.is_directory()) names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  toy::TempDir dir;
  algorithm::Interruption interruption;
  algorithm::TrainOutcome outcome;
  std::vector<Json> steps;
};

using Names = std::vector<std::string>;
using Steps = std::vector<int64_t>;

}  // namespace

TEST_CASE("validation comes at the start, by its period and at the end") {
  const Run run({"grpo.val_period=2", "grpo.val_at_start=true", "grpo.val_at_end=true", "grpo.max_num_steps=5"});
  CHECK(run.outcome.steps == 5);
  CHECK(run.steps_with("validation/accuracy") == Steps{0, 2, 4, 5});
  CHECK(run.steps_with("train/reward") == Steps{1, 2, 3, 4, 5});
  CHECK(Run({"grpo.val_period=2", "grpo.val_start_at=3"}).steps_with("validation/accuracy") == Steps{4, 6});
}

TEST_CASE("validation draws the same samples every time, several a prompt where that is asked for") {
  const Run run({"grpo.val_period=1", "grpo.max_num_steps=2", "policy.optimizer.kwargs.lr=0.0",
                 "grpo.max_val_samples=8", "++grpo.val_num_generations_per_prompt=4"});
  REQUIRE(run.steps.size() == 2);
  for (const char* metric : {"accuracy", "pass_k", "avg_length"}) {
    const std::string name = std::string("validation/") + metric;
    CHECK_MESSAGE(run.steps[0].at(name) == run.steps[1].at(name), name);
  }
  CHECK(run.steps[0].at("validation/pass_k") >= run.steps[0].at("validation/accuracy"));
  CHECK(run.steps[0].at("validation/num_problems_in_batch") == 32);
}

TEST_CASE("every step logs what NeMo-RL logs") {
  const Run run({"grpo.max_num_steps=2"});
  for (const char* metric :
       {"train/reward", "train/loss", "train/grad_norm", "train/lr", "train/skipped_steps", "train/global_valid_seqs",
        "train/global_valid_toks", "train/advantages/mean", "train/baseline_reward/pct_0", "train/mean_prompt_length",
        "train/total_num_tokens", "train/truncation_rate", "train/accuracy", "timing/train/total_step_time",
        "timing/train/generation", "timing/train/policy_training", "timing/train/prepare_for_generation/total",
        "performance/tokens_per_sec_per_gpu"}) {
    CHECK_MESSAGE(run.steps[1].contains(metric), metric);
  }
  CHECK(run.steps[1].at("train/global_valid_seqs") == 64);
}

TEST_CASE("checkpoints come by their period, and with the last step") {
  CHECK(Run({"grpo.max_num_steps=5"}).checkpoints() == Names{"step_2", "step_4", "step_5"});
  const Run none({"checkpointing.enabled=false"});
  CHECK_FALSE(fs::exists(none.dir / "checkpoints"));
  const Run best({"checkpointing.metric_name=val:accuracy", "checkpointing.keep_top_k=1", "grpo.val_period=2"});
  CHECK(best.checkpoints().size() <= 2);
}

TEST_CASE("restart checkpoints have a period of their own, and a run may have to be saved by a time") {
  const std::vector<std::string> both = {"checkpointing.save_period=4", "++checkpointing.ft_save_period=3"};
  CHECK(Run(both).checkpoints() == Names{"step_4", "step_6"});  // step_3 was for a restart, and is replaced
  auto kept = both;
  kept.push_back("++checkpointing.ft_keep_latest_k=3");
  CHECK(Run(kept).checkpoints() == Names{"step_3", "step_4", "step_6"});
  const Run late({"++checkpointing.checkpoint_must_save_by=00:00:00:00"});
  CHECK(late.outcome.steps == 1);
  CHECK(late.checkpoints() == Names{"step_1"});
  CHECK(Run({"++checkpointing.checkpoint_must_save_by=00:01:00:00"}).outcome.steps == 6);
  // From the launch of the program: what comes before the first step counts.
  const algorithm::TrainOptions launched;
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const Run after_setup({"++checkpointing.checkpoint_must_save_by=00:00:00:01", "grpo.max_num_steps=1000"}, launched);
  CHECK(after_setup.outcome.steps == 1);
  CHECK(after_setup.checkpoints() == Names{"step_1"});
}

TEST_CASE("a run starts afresh where it is told to, and what was saved before stays") {
  Run first({});
  const auto again = [&](std::vector<std::string> overrides, std::optional<bool> resumes = {}) {
    overrides.push_back("grpo.seed=4");  // other data: no run goes on from the first
    algorithm::TrainOptions options;
    options.resumes = resumes;
    const fs::path config = first.dir / "toy.yaml";
    return algorithm::train(config::resolve(config, overrides), options, first.interruption);
  };
  const auto bytes = [&](const char* step) {
    return plugin_test::read_text(first.dir / "checkpoints" / step / "policy/weights/toy.bin");
  };
  const std::string saved = bytes("step_4");
  CHECK(again({"++checkpointing.resume_if_exists=false", "grpo.max_num_steps=2"}).steps == 2);
  CHECK(first.checkpoints() == Names{"run_1", "step_2"});
  CHECK(bytes("run_1/step_4") == saved);
  CHECK(fs::exists(first.dir / "checkpoints/run_1/step_6/training_info.json"));
  CHECK(fs::exists(first.dir / "checkpoints/run_1/latest_checkpoint_status.json"));
  CHECK(again({"grpo.max_num_steps=3"}).steps == 3);  // true is the default: it goes on
  CHECK(first.checkpoints() == Names{"run_1", "step_2", "step_3"});
  CHECK(again({"grpo.max_num_steps=1"}, /*resumes=*/false).steps == 1);  // --fresh
  CHECK(first.checkpoints() == Names{"run_1", "run_2", "step_1"});
  // A restart after a lost worker goes on, whatever the key says.
  CHECK(again({"++checkpointing.resume_if_exists=false", "grpo.max_num_steps=2"}, /*resumes=*/true).steps == 2);
  CHECK(first.checkpoints() == Names{"run_1", "run_2", "step_2"});  // step_1, off the period, was for a restart
}

TEST_CASE("validation takes every prompt once, however many are drawn together") {
  const auto validated = [](const std::string& samples, const std::string& batch) {
    const Run run({"grpo.val_period=1", "grpo.max_num_steps=1", "grpo.max_val_samples=" + samples,
                   "grpo.val_batch_size=" + batch, "++grpo.val_num_generations_per_prompt=2"});
    return run.steps.at(0);
  };
  const Json whole = validated("15", "100");
  CHECK(whole.at("validation/num_problems_in_batch") == 30);
  CHECK(whole.at("validation/toy_requests") == 30);
  for (const char* batch : {"4", "1", "null"}) {
    const Json parts = validated("15", batch);
    for (const char* metric :
         {"num_problems_in_batch", "accuracy", "pass_k", "avg_length", "pass@samples_per_prompt", "toy_requests"}) {
      const std::string name = std::string("validation/") + metric;
      CHECK_MESSAGE(parts.at(name) == whole.at(name), batch << ": " << name);
    }
  }
  CHECK(validated("100", "4").at("validation/num_problems_in_batch") == 32);  // all there are
  CHECK(validated("null", "null").at("validation/num_problems_in_batch") == 32);
}

TEST_CASE("a run ends with its data, or when validation is good enough") {
  const Run epoch({"grpo.max_num_epochs=1", "grpo.max_num_steps=100"});  // 64 prompts, 8 a step
  CHECK(epoch.outcome.steps == 8);
  const Run stopped(
      {"grpo.val_period=2", "++grpo.stop_at_validation_metric=accuracy", "++grpo.stop_at_validation_threshold=0.0"});
  CHECK(stopped.outcome.steps == 2);
  CHECK_FALSE(stopped.outcome.interrupted);
  CHECK(stopped.checkpoints() == Names{"step_2"});
}

TEST_CASE("a checkpoint that was not validated has no rank, and the best one stays") {
  const Run run({"grpo.val_period=4", "grpo.max_num_steps=7", "checkpointing.save_period=1",
                 "checkpointing.keep_top_k=1", "checkpointing.metric_name=val:accuracy"});
  CHECK(run.checkpoints() == Names{"step_4", "step_7"});
  const Json info = Json::parse(plugin_test::read_text(run.dir / "checkpoints/step_7/training_info.json"));
  CHECK(info.contains("train:reward"));
  CHECK_FALSE(info.contains("val:accuracy"));
}

TEST_CASE(
    "a metric that validation does not tell is an error that names those it tells, and what was trained is saved") {
  const toy::TempDir dir;
  const auto error_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"grpo.val_period=2"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    algorithm::Interruption interruption;
    return error_of([&] {
      algorithm::train(config::resolve(dir.write("toy.yaml", toy::config_text(dir.path())), overrides), {},
                       interruption);
    });
  };
  const std::string ranked = error_with({"checkpointing.metric_name=val:acuracy"});
  CHECK(contains(ranked,
                 "checkpointing.metric_name: got 'val:acuracy', which validation does not tell, did you mean "
                 "'val:accuracy'?"));
  CHECK(contains(ranked, "it tells: val:accuracy, "));
  CHECK(fs::exists(dir / "checkpoints/step_2"));
  CHECK(contains(error_with({"++grpo.stop_at_validation_metric=acc", "++grpo.stop_at_validation_threshold=0",
                             "checkpointing.enabled=false"}),
                 "grpo.stop_at_validation_metric: got 'acc', which validation does not tell"));
}

TEST_CASE("validation leaves its samples, a step its weight decay and all of its valid tokens") {
  const Run run({"grpo.val_period=2", "grpo.max_num_steps=2", "policy.train_global_batch_size=16"});
  std::ifstream in(run.dir / "logs/exp_001/val_data_step2.jsonl");
  std::vector<Json> samples;
  for (std::string line; std::getline(in, line);) samples.push_back(Json::parse(line));
  REQUIRE(samples.size() == 16);
  for (const Json& sample : samples)
    CHECK((sample.at("rewards") == 1) == (sample.at("response") == sample.at("expected_answer")));
  const Json& step = run.steps.back();
  CHECK(step.at("train/wd") == 0.01);
  // Four updates, whose mean NeMo-RL tells as global_valid_toks.
  CHECK(step.at("performance/valid_tokens_per_sec").get<double>() *
            step.at("timing/train/total_step_time").get<double>() ==
        doctest::Approx(4 * step.at("train/global_valid_toks").get<double>()));
}

TEST_CASE("scaling reaches the parts of rewards, which gdpo reads") {
  const std::vector<std::string> parts = {
      "++grpo.adv_estimator.name=gdpo",
      "grpo.max_num_steps=1",
      "grpo.reward_scaling.enabled=true",
      "++grpo.reward_scaling.source_min=0",
      "++grpo.reward_scaling.source_max=0.5",
      "env={exact_answer: {rewards: [{name: exact_answer}, {name: length, full_at: 1, none_at: 3}]}}"};
  rollout::Rollout rollout;
  rollout.batch = data::Batch::of_lengths(std::vector<int64_t>{0, 0});
  rollout.batch.set("rewards", data::Tensor::of(std::vector<float>{1, 0.25f}), data::Axis::sample);
  rollout.batch.set("sample_mask", data::Tensor::of(std::vector<float>{1, 1}), data::Axis::sample);
  rollout.batch.set("truncated", data::Tensor::of(std::vector<uint8_t>{0, 0}), data::Axis::sample);
  rollout.components["a"] = {1, 0.25f};
  const toy::TempDir dir;
  algorithm::shape(config::run_config(config::resolve(dir.write("toy.yaml", toy::config_text(dir.path())), parts)).grpo,
                   rollout);
  CHECK(rollout.components.at("a") == std::vector<float>{1, 0.5f});
  CHECK(rollout.batch.at("rewards").span<float>()[1] == 0.5f);
}

TEST_CASE("shuffled rewards teach nothing: the same run with answers of other prompts stays flat") {
  const std::vector<std::string> long_run = {"grpo.max_num_steps=40", "checkpointing.enabled=false"};
  const Run honest(long_run);
  CHECK(honest.steps.back().at("train/reward") > 0.4);
  // Every prompt with another prompt's answer: what is right cannot be known from the prompt.
  const toy::TempDir dir;
  std::string lines;
  for (int i = 0; i < 64; ++i) {
    const std::string letters = {static_cast<char>('a' + i % 8), static_cast<char>('a' + i / 8)};
    lines += fmt::format("{{\"input\": \"{}\", \"output\": \"{}\"}}\n", letters,
                         static_cast<char>('a' + (i * 5 + i / 8 * 3) % 8));
  }
  auto shuffled = long_run;
  for (const char* key : {"kind", "size", "validation_size"}) shuffled.push_back(std::string("~data.train.") + key);
  shuffled.push_back("data.train.dataset_name=ResponseDataset");
  shuffled.push_back("+data.train.data_path=" + dir.write("train.jsonl", lines).string());
  const Run control(shuffled);
  double last = 0;
  for (size_t i = control.steps.size() - 10; i < control.steps.size(); ++i)
    last += control.steps[i].at("train/reward").get<double>() / 10;
  CHECK(last < 0.35);
}

TEST_CASE("several optimizer steps a rollout") {
  const Run run({"grpo.max_num_steps=2", "policy.train_global_batch_size=16"});
  CHECK(run.steps[0].at("train/global_valid_seqs") == 16);
}

namespace {

// What of dynamic sampling all these runs have; the toy model solves a part of its prompts now and then.
std::vector<std::string> varied(const std::vector<std::string>& more) {
  std::vector<std::string> overrides = {"grpo.use_dynamic_sampling=true", "grpo.use_leave_one_out_baseline=false"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

// Rewards of a step's samples by prompt.
std::map<std::string, std::multiset<double>> rewards_by_prompt(const Run& run, int step) {
  std::map<std::string, std::multiset<double>> rewards;
  std::ifstream in(run.dir / "logs/exp_001" / fmt::format("train_data_step{}.jsonl", step));
  for (std::string line; std::getline(in, line);) {
    const Json sample = Json::parse(line);
    const std::string content = sample.at("content"), response = sample.at("response");
    rewards[content.substr(0, content.size() - response.size())].insert(sample.at("rewards").get<double>());
  }
  return rewards;
}

}  // namespace

TEST_CASE("dynamic sampling draws until a step has its samples, and trains on groups whose rewards vary alone") {
  const Run run(varied({"grpo.max_num_steps=3"}));
  REQUIRE(run.steps.size() == 3);
  double rollouts = 0;
  for (int step = 1; step <= 3; ++step) {
    const Json& metrics = run.steps[static_cast<size_t>(step - 1)];
    CHECK(metrics.at("train/global_valid_seqs") == 64);
    rollouts += metrics.at("train/dynamic_sampling_num_gen_batches").get<double>();
    CHECK(metrics.at("train/dynamic_sampling_num_discarded_valid_samples").get<double>() < 64);
    CHECK(metrics.contains("timing/train/dynamic_sampling"));
    const auto rewards = rewards_by_prompt(run, step);
    CHECK(rewards.size() >= 2);
    for (const auto& [prompt, of_prompt] : rewards) CHECK_MESSAGE(*of_prompt.begin() != *of_prompt.rbegin(), prompt);
  }
  CHECK(rollouts > 3);
  const Json& last = run.steps.back();
  CHECK(last.at("train/reward") != last.at("train/filtered_reward"));
}

TEST_CASE("groups of dynamic sampling stay whole, also under a leave-one-out baseline") {
  const Run run(varied({"grpo.use_leave_one_out_baseline=true", "grpo.max_num_steps=2"}));
  REQUIRE(run.steps.size() == 2);
  for (int step = 1; step <= 2; ++step) {
    for (const auto& [prompt, rewards] : rewards_by_prompt(run, step)) {
      CHECK_MESSAGE(rewards.size() % 8 == 0, prompt);
      CHECK_MESSAGE(*rewards.begin() != *rewards.rbegin(), prompt);
    }
  }
}

TEST_CASE("rollouts of one step draw other samples, and a step may be given more prompts at once") {
  const Run one(varied({"grpo.max_num_steps=1", "policy.optimizer.kwargs.lr=0.0"})),
      wide(varied({"grpo.max_num_steps=1", "grpo.batch_multiplier=4"}));
  CHECK(wide.steps.at(0).at("train/dynamic_sampling_num_gen_batches") <
        one.steps.at(0).at("train/dynamic_sampling_num_gen_batches"));
  CHECK(wide.steps.at(0).at("train/global_valid_seqs") == 64);
}

TEST_CASE("a run whose data end in a step of dynamic sampling validates and saves the step before") {
  const Run run(varied({"grpo.max_num_epochs=1", "grpo.max_num_steps=100", "grpo.val_at_end=true"}));
  CHECK(run.outcome.steps < 8);
  CHECK(run.outcome.steps > 0);
  CHECK(run.checkpoints().back() == fmt::format("step_{}", run.outcome.steps));
  CHECK(run.steps_with("validation/accuracy") == Steps{run.outcome.steps});
}

TEST_CASE("dynamic sampling that finds too few samples ends the run, and says why") {
  const std::string error = error_of([] {
    Run(varied({"++grpo.dynamic_sampling_max_gen_batches=1", "grpo.num_generations_per_prompt=2",
                "policy.train_global_batch_size=16"}));
  });
  CHECK(contains(error, "dynamic sampling: after 2 generations only "));
  CHECK(contains(error, " of 16 samples belong to groups whose rewards vary"));
}

TEST_CASE("faults of responses make their rewards 0, and are counted") {
  const std::string unwanted = "++reward_penalties.penalize_unwanted_tokens=true",
                    tokens = "++reward_penalties.token_ids.unwanted=";
  const Run all({"grpo.max_num_steps=2", unwanted, tokens + "[0,1,2,3,4,5,6,7,8,9,10,11]"});
  CHECK(all.steps.at(0).at("train/unwanted_token_rate") == 1);
  CHECK(all.steps.at(1).at("train/reward") == 0);
  const Run plain({"grpo.max_num_steps=1"}), some({"grpo.max_num_steps=1", unwanted, tokens + "3"});
  CHECK(some.steps.at(0).at("train/unwanted_token_rate") > 0);
  CHECK(some.steps.at(0).at("train/unwanted_token_rate") < 1);
  CHECK(some.steps.at(0).at("train/reward") < plain.steps.at(0).at("train/reward"));
  CHECK_FALSE(plain.steps.at(0).contains("train/unwanted_token_rate"));
  // Tags may be told by tokens: every token that opens reasoning is left open.
  const Run tags({"grpo.max_num_steps=1", "++reward_penalties.penalize_malformed_think_tag=true",
                  "++reward_penalties.token_ids.think_open=3", "++reward_penalties.token_ids.think_close=4"});
  CHECK(tags.steps.at(0).at("train/malformed_think_tag_rate") > 0);
}

TEST_CASE("what policy.model_name may be wrong about") {
  const toy::TempDir dir;
  CHECK(contains(error_of([&] { algorithm::find_model(dir.path()); }),
                 "has no config.json. Wanted: a Hugging Face model directory"));
  const std::string gguf = dir.write("model.gguf", "GGUF").string();
  dir.write("adapter/adapter_config.json", R"({"peft_type": "LORA"})");
  CHECK(contains(error_of([&] { algorithm::find_model(dir.path() / "adapter"); }),
                 "adapter has no config.json. Wanted: a Hugging Face model directory (config.json, tokenizer.json, "
                 "*.safetensors); it holds an adapter of PEFT's (LORA; adapter_config.json)"));
  CHECK(error_of([&] { algorithm::find_model(gguf); }) ==
        fmt::format("policy.model_name: {0} is a GGUF file. Convert it once: hexad convert {0} <directory>", gguf));
  CHECK(contains(error_of([&] { algorithm::find_model("meta-llama/Llama-9.9-1B"); }),
                 "hf download meta-llama/Llama-9.9-1B"));
}
