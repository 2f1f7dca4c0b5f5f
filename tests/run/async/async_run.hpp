// Runs of configs/quickstart_async.yaml, and hands on their environment and their ranks.
#pragma once
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/run/run_steps.hpp"

namespace async_run {

using first_party::both;
using first_party::source;
using first_party::steps_of;
using plugin_test::contains;
using toy::TempDir;

using Json = nlohmann::json;
using Overrides = std::vector<std::string>;

// Responses of 48 tokens, one after another: generation takes longer than training.
inline const Overrides kSlow = {"policy.max_total_sequence_length=64",
                                "policy.generation.max_new_tokens=48",
                                "++policy.generation.ignore_eos=true",
                                "++policy.generation.stop_token_ids=[]",
                                "++policy.generation.native_cfg.max_num_seqs=1",
                                "grpo.num_prompts_per_step=8",
                                "policy.train_global_batch_size=128"};

// So many groups of so many samples a step.
inline Overrides small_steps(int groups, int samples = 4) {
  return {fmt::format("grpo.num_prompts_per_step={}", groups),
          fmt::format("grpo.num_generations_per_prompt={}", samples),
          fmt::format("policy.train_global_batch_size={}", samples * groups)};
}

// Four at a time that end at different places: updates meet some under way.
inline Overrides uneven(int groups, int samples) {
  std::vector<int> lengths;
  for (int i = 0; i < groups * samples; ++i) lengths.push_back(16 + i * 7 % 33);
  return both(both(kSlow, small_steps(groups, samples)),
              {"++policy.generation.native_cfg.max_num_seqs=4",
               fmt::format("++policy.generation.imposed_lengths=[{}]", fmt::join(lengths, ","))});
}

inline std::string age(int steps) { return fmt::format("grpo.async_grpo.max_trajectory_age_steps={}", steps); }
inline std::string steps(int count) { return fmt::format("grpo.max_num_steps={}", count); }

inline std::vector<std::string> arguments(const TempDir& dir, const Overrides& overrides) {
  return first_party::train(source() + "/configs/quickstart_async.yaml", dir,
                            both({"++cluster.device=cpu"}, overrides));
}
inline Overrides alone(const Overrides& overrides) { return both(first_party::training_alone(), overrides); }

// An environment of three turns that says "a" in between, and responses that end at any of five tokens.
struct Talk {
  double seconds = 0;  // how long it thinks about a response
  // Conditions on `step` and `group`, in Python. Where `held` holds, the first turn makes the file asked-STEP and waits
  // for the file go-STEP.
  std::string ends_at_once = "False", held = "False";
};

inline Overrides talking(const TempDir& dir, const Talk& talk = {}) {
  const auto program = dir.write("talk.py", R"PY(
import json, os, sys, time
seconds, ends_at_once, held = sys.argv[1:]
def hold(step):
    here = os.path.dirname(__file__)
    open("%s/asked-%d" % (here, step), "w").close()
    while not os.path.exists("%s/go-%d" % (here, step)): time.sleep(0.01)
for line in sys.stdin:
    r = json.loads(line)
    turns, step, group = r.get("state", 0), r["step"], r["group"]
    if turns != r["turn"]: sys.exit("state %s at turn %s" % (turns, r["turn"]))
    if turns == 0 and eval(held): hold(step)
    time.sleep(float(seconds))
    answer = {"id": r["id"], "reward": r["response"].count("a") + 0.125 * turns, "state": turns + 1}
    if turns < 2 and not eval(ends_at_once): answer["reply"] = "a"
    print(json.dumps(answer), flush=True)
)PY");
  const std::string env = fmt::format("{{command: [python3, {}, '{}', '{}', '{}'], num_workers: 1, timeout_s: {}}}",
                                      program.string(), talk.seconds, talk.ends_at_once, talk.held, toy::kPatienceS);
  return {"grpo.max_rollout_turns=3", "policy.max_total_sequence_length=32", "data.train.env_name=talk",
          "++policy.generation.stop_token_ids=[2,4,5,6,7]", "++env.talk=" + env};
}

inline std::vector<Json> train(const Overrides& overrides) {
  const TempDir dir;
  const toy::Ended run = toy::run(arguments(dir, overrides), "", 600);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  return steps_of(dir);
}

// The rank of a worker, as its log has it.
inline pid_t worker_of(pid_t controller, int rank) {
  const std::string log = fmt::format("worker-{}.log", rank);
  for (const pid_t pid : toy::workers_of(controller))
    if (toy::fs::read_symlink(fmt::format("/proc/{}/fd/1", pid)).filename() == log) return pid;
  return 0;
}

inline bool has_begun(const TempDir& dir) { return toy::fs::exists(dir / "logs/exp_001/train_data_step1.jsonl"); }

// A run that is held in its environment, and its ranks.
class HeldRun {
 public:
  explicit HeldRun(const Talk& talk, const Overrides& overrides)
      : program_(arguments(dir_, alone(both(talking(talk_, talk), overrides)))) {}

  // Until the environment holds back the first turn of the step.
  void wait_for_hold(int step) const {
    wait_for([&] { return is_held(step); });
  }
  // The same, with a rank that runs for a small part of the time until then, and stands still at the end.
  void wait_for_hold_slowed(int step, int rank) const {
    const pid_t slow = worker(rank);
    wait_for([&] {
      ::kill(slow, SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::kill(slow, SIGSTOP);
      return is_held(step);
    });
  }
  void go_on(int step) const { talk_.write(fmt::format("go-{}", step), ""); }
  void wait_for_line(const std::string& text) const {
    wait_for([&] { return contains(program_.out() + program_.err(), text); });
  }
  void signal(int rank, int number) const { ::kill(worker(rank), number); }
  // The metrics of every step of a run that ends well.
  std::vector<Json> end() {
    const toy::Ended run = program_.wait();
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    return steps_of(dir_);
  }

 private:
  bool is_held(int step) const { return toy::fs::exists(talk_ / fmt::format("asked-{}", step)); }
  pid_t worker(int rank) const {
    const pid_t worker = worker_of(program_.pid(), rank);
    REQUIRE(worker > 0);
    return worker;
  }
  template <typename Done>
  void wait_for(const Done& done) const {
    toy::eventually([&] { return done() || !toy::alive(program_.pid()); });
    REQUIRE_MESSAGE(done(), program_.err());
  }
  TempDir dir_, talk_;
  toy::Program program_;
};

}  // namespace async_run
