// Rewards by a program in whole runs: what a run makes of them, and how it ends.
#include <doctest/doctest.h>

#include "tests/support/toy/train.hpp"

using plugin_test::contains;
using plugin_test::Json;
using toy::Ended;
using toy::Program;
using toy::TempDir;
using toy::weights;

namespace {

// Right answers, but for what the files beside it say: `fail` (every answer is invalid), `some` (each third one is),
// `hang` (none comes from the step in it on).
constexpr const char* kReward = R"PY(
import json, os, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
has = lambda name: os.path.exists(os.path.join(folder, name))
hang_at = int(open(os.path.join(folder, "hang")).read()) if has("hang") else 1 << 30
with open(os.path.join(folder, "pids"), "a") as f: f.write("%d\n" % os.getpid())
for line in sys.stdin:
    r = json.loads(line)
    if r["step"] >= hang_at:
        open(os.path.join(folder, "hangs"), "w").close()
        time.sleep(1000)
    bad = has("fail") or (has("some") and r["id"] % 3 == 0)
    answer = {"id": r["id"], "invalid": True, "reason": "not today"} if bad else {
        "id": r["id"], "reward": r["response"].strip() == r["ground_truth"].strip()}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
)PY";

std::vector<std::string> train_with_program(const TempDir& dir, std::vector<std::string> overrides = {}) {
  dir.write("reward.py", kReward);
  overrides.insert(overrides.begin(),
                   {"data.train.env_name=mine",
                    fmt::format("+env.mine={{command: [python3, {}], num_workers: 2}}", (dir / "reward.py").string())});
  return toy::train(dir, std::move(overrides));
}

std::vector<Json> metrics(const TempDir& dir) { return toy::lines(dir / "logs/exp_001/metrics.jsonl"); }

bool all_gone(const TempDir& dir) {
  std::ifstream in(dir / "pids");
  for (pid_t pid = 0; in >> pid;) {
    if (toy::alive(pid)) return false;
  }
  return true;
}

void touch(const TempDir& dir, const char* name) { dir.write(name, ""); }

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a program's rewards train as the built-in's do; its processes end with the run") {
  const TempDir dir, built_in;
  const Ended run = toy::run(train_with_program(dir));
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const auto config = built_in.write("toy.yaml", toy::config_text(built_in.path()));
  REQUIRE(toy::run({"train", config.string(), "env.exact_answer={ignore_case: false}"}).code == 0);
  CHECK(weights(dir, 6) == weights(built_in, 6));
  CHECK(weights(dir, 6) != "");
  CHECK_FALSE(metrics(dir).back().contains("train/num_invalid_samples"));
  CHECK(all_gone(dir));
}

TEST_CASE("invalid samples leave the loss and the means, and are counted") {
  const TempDir dir;
  touch(dir, "some");
  const Ended run = toy::run(train_with_program(dir, {"grpo.max_num_steps=1"}));
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const Json step = metrics(dir).at(0);
  CHECK(step.at("train/num_invalid_samples") == 22);  // of 64, each third one
  CHECK(step.at("train/global_valid_seqs") == 42);
  double sum = 0, count = 0, null = 0;
  std::ifstream in(dir / "logs/exp_001/train_data_step1.jsonl");
  for (std::string line; std::getline(in, line);) {
    const Json sample = Json::parse(line);
    CHECK(sample.at("rewards").is_null() == (sample.at("sample_loss_mask") == 0));
    null += sample.at("rewards").is_null();
    if (sample.at("rewards").is_null()) continue;
    sum += sample.at("rewards").get<double>();
    count += 1;
  }
  CHECK(null == 22);
  CHECK(step.at("train/reward").get<double>() == doctest::Approx(sum / count));
}

TEST_CASE("validation says how many of its samples have no reward, and how many prompts it leaves out") {
  const TempDir dir;
  touch(dir, "some");
  const Ended run =
      toy::run(train_with_program(dir, {"grpo.max_num_steps=1", "grpo.val_at_start=true", "grpo.max_val_samples=12"}));
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(metrics(dir).at(0).at("validation/num_invalid_samples") == 4);  // of 12, each third one
  CHECK_MESSAGE(contains(run.err, "  (4 samples could not be scored and count nowhere)"), run.err);
  CHECK_MESSAGE(contains(run.err, "note: validation takes the first 12 of 16 prompts (grpo.max_val_samples)"), run.err);
}

TEST_CASE("a step without one valid reward ends the run, with the reason and code 4") {
  const TempDir dir;
  touch(dir, "fail");
  const Ended run = toy::run(train_with_program(dir));
  CHECK(run.code == 4);
  CHECK_MESSAGE(
      contains(run.err,
               "rewards: not one of the 64 samples of step 1 could be scored, so that there is nothing to learn "
               "from. The first reason: env.mine: the program says that it cannot score it: not today"),
      run.err);
  CHECK(all_gone(dir));
}

TEST_CASE("a program that is not there ends the run before it begins") {
  const TempDir dir;
  const Ended run = toy::run(train_with_program(dir, {"env.mine.command=[no-such-reward]"}));
  CHECK(run.code == 2);
  CHECK_MESSAGE(contains(run.err, "env.mine.command: no program 'no-such-reward' on PATH"), run.err);
}

TEST_CASE("Ctrl-C while a reward hangs: the step is given up, those before it are saved, and resumed bit for bit") {
  const TempDir dir, undisturbed;
  REQUIRE(toy::run(train_with_program(undisturbed)).code == 0);
  {
    dir.write("hang", "3");
    Program program(train_with_program(dir, {"checkpointing.save_period=100"}));
    REQUIRE(toy::eventually([&] { return toy::fs::exists(dir / "hangs"); }));
    ::kill(program.pid(), SIGINT);
    const Ended ended = program.wait();
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(contains(ended.err, "env.mine: interrupted, and "));
    CHECK(contains(ended.out, "interrupted and saved after step 2"));
    CHECK(all_gone(dir));
  }
  toy::fs::remove(dir / "hang");
  const Ended resumed = toy::run(train_with_program(dir));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(contains(resumed.err, "resumed from "));
  CHECK(weights(dir, 6) == weights(undisturbed, 6));
}

TEST_CASE("Ctrl-C twice, or kill -9, while a reward hangs: nothing of it is left") {
  for (const int signal : {SIGINT, SIGKILL}) {
    const TempDir dir;
    dir.write("hang", "1");
    Program program(train_with_program(dir));
    REQUIRE(toy::eventually([&] { return toy::fs::exists(dir / "hangs"); }));
    ::kill(program.pid(), signal);
    if (signal == SIGINT) {
      REQUIRE(toy::eventually([&] { return contains(program.err(), "interrupted "); }));
      ::kill(program.pid(), SIGINT);
    }
    const Ended ended = program.wait();
    CHECK_FALSE(contains(ended.err, "rewards of step 1 have not come"));  // which the first one ends with, later
    CHECK(ended.code == (signal == SIGINT ? 130 : -SIGKILL));
    CHECK(toy::eventually([&] { return all_gone(dir); }));
  }
}

TEST_SUITE_END();
