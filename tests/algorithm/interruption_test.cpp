// A run that is interrupted in each of its phases. Whole runs in this process on the toy plugins; what needs signals or
// processes of their own is in tests/app.
#include "core/algorithm/run/interruption.hpp"

#include <functional>
#include <thread>

#include "core/algorithm/run/train_run.hpp"
#include "tests/support/toy/supervised.hpp"

using namespace hexad;
using algorithm::Interruption;
using plugin_test::Json;

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// What a run leaves that is interrupted when `when` holds, which a thread asks again and again.
struct Stopped {
  Stopped(const std::function<bool(const Stopped&)>& when, Strings overrides, const std::string& algorithm = "") {
    const std::string text =
        algorithm.empty() ? toy::config_text(dir.path()) : toy::supervised_config_text(algorithm, dir);
    for (std::string& one : overrides)  // DIR is a file of the run's folder
      if (const size_t at = one.find("DIR"); at != one.npos) one.replace(at, 3, (dir / "trace").string());
    const config::Resolved resolved = config::resolve(dir.write("toy.yaml", text), overrides);
    const auto report = [](const fs::path& run_dir) { std::ofstream(run_dir / "report.html") << "a page"; };
    interruption.interrupted = when(*this) ? 1 : 0;
    std::jthread watcher([&](const std::stop_token& over) {
      while (!over.stop_requested() && !when(*this)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      interruption.interrupted = 1;
    });
    outcome = algorithm::train(resolved, {.report = report}, interruption);
    watcher.request_stop();
    std::ifstream in(dir / "logs/exp_001/metrics.jsonl");
    for (std::string line; std::getline(in, line);) steps.push_back(Json::parse(line));
  }
  // So many lines of the generator's trace: one a request.
  size_t requests() const {
    const std::string trace = plugin_test::read_text(dir / "trace");
    return static_cast<size_t>(std::ranges::count(trace, '\n'));
  }
  // The last finished step is saved and in the log, and the report is there.
  void check_whole(int64_t least) const {
    CHECK(outcome.interrupted);
    CHECK(outcome.saved);
    CHECK_FALSE(outcome.is_taken_back);
    CHECK(outcome.steps >= least);
    CHECK(static_cast<int64_t>(steps.size()) == outcome.steps);
    CHECK(fs::exists(dir / fmt::format("checkpoints/step_{}/training_info.json", outcome.steps)));
    CHECK_FALSE(fs::exists(dir / fmt::format("checkpoints/step_{}", outcome.steps + 1)));
    CHECK(fs::exists(dir / "logs/exp_001/report.html"));
  }

  toy::TempDir dir;
  Interruption interruption;
  algorithm::TrainOutcome outcome;
  std::vector<Json> steps;
};

bool at_once(const Stopped&) { return true; }
bool after_a_step(const Stopped& run) { return run.interruption.has_trained; }

const Strings kLong = {"checkpointing.save_period=100000", "grpo.max_num_steps=100000", "grpo.max_num_epochs=100000"};
// Four samples a step: what takes time are polls, a completion each.
const Strings kFew = {"grpo.num_prompts_per_step=2", "grpo.num_generations_per_prompt=2",
                      "policy.train_global_batch_size=4", "policy.train_micro_batch_size=4",
                      "policy.logprob_batch_size=4"};

Strings both(Strings list, const Strings& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace

TEST_CASE("before the first step an interruption leaves nothing behind") {
  for (const char* algorithm : {"", "sft"}) {
    const Stopped run(at_once, *algorithm ? Strings{} : kLong, algorithm);
    CHECK(run.outcome.interrupted);
    CHECK(run.outcome.is_taken_back);
    CHECK(run.outcome.steps == 0);
    CHECK_FALSE(fs::exists(run.dir / "logs"));
    CHECK_FALSE(fs::exists(run.dir / "checkpoints"));
  }
}

TEST_CASE("an interruption ends the run with its last finished step: checkpoint, metrics and report") {
  Stopped(after_a_step, kLong).check_whole(1);
  Stopped(after_a_step, {"checkpointing.save_period=100000", "sft.max_num_steps=100000", "sft.max_num_epochs=100000"},
          "sft")
      .check_whole(1);
}

TEST_CASE("a step whose samples do not come is given up, and the one before it saved") {
  const Stopped run([](const Stopped& now) { return now.requests() > size_t{2} * 64; },
                    both(kLong, {"+policy.generation.plugin_config={fault: 'silence@3:alive', trace: DIR}"}));
  run.check_whole(2);
  CHECK(run.outcome.steps == 2);
}

TEST_CASE("a validation is given up, and the step before it is saved and logged without it") {
  // 4 requests of step 1, and those of its validation, of which each takes a poll of 200 ms.
  const Stopped run(
      [](const Stopped& now) { return now.requests() > 4; },
      both(both(kLong, kFew), {"grpo.val_period=1", "+policy.generation.plugin_config={poll_ms: 200, trace: DIR}"}));
  run.check_whole(1);
  CHECK(run.outcome.steps == 1);
  CHECK_FALSE(run.steps.at(0).contains("validation/accuracy"));
}

TEST_CASE("a checkpoint that is asked for is saved after the step, and the run goes on") {
  const toy::TempDir dir;
  const config::Resolved resolved =
      config::resolve(dir.write("toy.yaml", toy::config_text(dir.path())),
                      {"checkpointing.save_period=100", "++checkpointing.keep_top_k=null"});
  Interruption interruption;
  interruption.saves = 1;
  const algorithm::TrainOutcome outcome = algorithm::train(resolved, {}, interruption);
  CHECK_FALSE(outcome.interrupted);
  CHECK(outcome.steps == 6);
  CHECK(fs::exists(dir / "checkpoints/step_1/training_info.json"));
  CHECK_FALSE(fs::exists(dir / "checkpoints/step_2"));
  CHECK(fs::exists(dir / "checkpoints/step_6"));
}

TEST_CASE("what is taken back is what the run has made, and folders of others stay") {
  const toy::TempDir dir;
  fs::create_directories(dir / "there");
  Interruption interruption;
  interruption.will_make(dir / "there/new/deep");
  interruption.will_make(dir / "shared/own");
  fs::create_directories(dir / "there/new/deep");
  fs::create_directories(dir / "shared/own");
  dir.write("shared/other", "of another run");
  fs::create_directories(dir / "there/new/exp_001/more");
  interruption.has_made(dir / "there/new/exp_001");
  dir.write("there/new/exp_001/more/file", "text");
  bool called = false;
  interruption.take_back([&] { called = true; });
  CHECK(called);
  CHECK(fs::exists(dir / "there"));
  CHECK_FALSE(fs::exists(dir / "there/new"));
  CHECK(fs::exists(dir / "shared/other"));
  CHECK_FALSE(fs::exists(dir / "shared/own"));

  interruption.begin();
  interruption.has_made(dir / "there");
  interruption.trained();
  interruption.take_back([&] { FAIL("a step is finished"); });
  CHECK(fs::exists(dir / "there"));
}
