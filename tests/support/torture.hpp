// kill -9 at random moments of a run: of the controller or of a worker, after which the run is started again until it
// ends, or of reward programs, which the run itself starts again.
#pragma once
#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "tests/support/toy/program.hpp"

namespace torture {

namespace fs = std::filesystem;

// How often a test kills: HEXAD_TORTURE=N for the long form (`make test-torture`), else a few times.
inline int kills(int otherwise) {
  const char* asked = std::getenv("HEXAD_TORTURE");
  return asked ? std::atoi(asked) : otherwise;
}

// Contents of all files of a folder by their path.
inline std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder)] = toy::read_text(entry.path());
  }
  return files;
}

// Starts the run and kills the controller, or one worker, after so many seconds, if it has not ended by then. No
// process of it is left, and the end came in time.
inline void start_and_kill(const std::vector<std::string>& arguments, double after_s, bool worker) {
  toy::Program program(arguments);
  std::this_thread::sleep_for(std::chrono::duration<double>(after_s));
  const auto workers = toy::workers_of(program.pid());
  if (worker && !workers.empty()) ::kill(workers.back(), SIGKILL);
  if (!worker) ::kill(program.pid(), SIGKILL);
  const toy::Ended ended = program.wait();
  INFO(ended.err);
  CHECK((ended.code == 0 || ended.code == (worker ? 4 : -SIGKILL)));
  CHECK(toy::eventually([&] { return std::ranges::none_of(workers, toy::alive); }));
}

// The checkpoints that a killed run has left can be read, the run goes on from the newest, and ends with code 0.
inline void go_on(const std::vector<std::string>& arguments, const fs::path& checkpoints) {
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (entry.path().filename().string().starts_with("step_"))
      CHECK_MESSAGE(fs::exists(entry.path() / "training_info.json"), entry.path());
  }
  const toy::Ended ended = toy::run(arguments);
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename();
    CHECK_MESSAGE((!name.starts_with("tmp_") && !name.starts_with("old_")), name);
  }
}

// The answer's reward. Kills itself once where HEXAD_REWARD_FAULT=WHERE@STEP says: at its start, with a request that
// was read, half or fully answered.
inline constexpr const char* kReward = R"PY(
import json, os, signal, sys
where, _, step = os.environ.get("HEXAD_REWARD_FAULT", "none@0").partition("@")
def phase(here, at):
    if here != where or at != int(step): return
    try:
        os.close(os.open(__file__ + ".killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()
phase("start", 0)
for line in sys.stdin:
    r = json.loads(line)
    phase("read", r["step"])
    right = r["response"].strip().lower() == r["ground_truth"].strip().lower()
    answer = json.dumps({"id": r["id"], "reward": 1.0 if right else 0.0}) + "\n"
    say(answer[:9])
    phase("half", r["step"])
    say(answer[9:])
    phase("answered", r["step"])
)PY";

// A reward program of a run's own folder. Its path is in no other command line than those of its processes, as the key
// is in a file.
struct Rewards {
  explicit Rewards(const toy::TempDir& dir)
      : script(dir.write("reward.py", kReward)),
        file(dir.write("reward.yaml",
                       fmt::format("env: {{mine: {{command: [python3, {}], num_workers: 2, retries: 3}}}}\n"
                                   "data: {{train: {{env_name: mine}}}}\n",
                                   script.string()))) {}
  // Kills one of its processes: a program, or a shell that leads or guards one; or all of them. Returns how many.
  size_t kill_some(std::mt19937& random) const {
    std::vector<pid_t> pids = toy::processes_with(script.string());
    std::ranges::shuffle(pids, random);
    if (random() % 2 == 0 && pids.size() > 1) pids.resize(1);
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    return pids.size();
  }
  bool are_there() const { return !toy::processes_with(script.string()).empty(); }
  bool gone() const {
    return toy::eventually([&] { return !are_there(); });
  }
  fs::path script, file;
};

// Kills reward processes at up to three moments of the run from their start on, which ends well nevertheless. Returns
// how many were killed.
inline size_t kill_rewards(const std::vector<std::string>& arguments, const Rewards& rewards, double run_s,
                           std::mt19937& random) {
  std::uniform_real_distribution<double> pause(0, 0.6 * run_s);
  size_t killed = 0;
  toy::Program program(arguments);
  CHECK(toy::eventually([&] { return rewards.are_there() || !toy::alive(program.pid()); }));
  for (int times = 1 + static_cast<int>(random() % 3); times > 0; --times) {
    std::this_thread::sleep_for(std::chrono::duration<double>(pause(random)));
    killed += rewards.kill_some(random);
  }
  const toy::Ended ended = program.wait();
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(rewards.gone());
  return killed;
}

// No sample of the run was left without a reward.
inline void all_scored(const fs::path& log_dir) {
  const std::string metrics = toy::read_text(log_dir / "exp_001/metrics.jsonl");
  CHECK(metrics != "");
  CHECK_FALSE(toy::contains(metrics, "num_invalid_samples"));
}

}  // namespace torture
