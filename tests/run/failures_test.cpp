// A worker that dies or stops in the middle of a training step ends the whole run in time, by name.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"

using plugin_test::contains;
using toy::TempDir;

namespace {

constexpr double kTimeoutS = 20;               // cluster.worker_timeout_s; a collective gives up after half of it
constexpr double kDeadlineS = kTimeoutS + 35;  // silence alone counts after a minute; a busy machine

// The SDK's example loss, which says that it runs by making the file `running`, and takes its time.
struct SlowLoss {
  SlowLoss() {
    std::string source = toy::read_text(first_party::source() + "/sdk/examples/loss_c/ppo_clip_c.c");
    const auto replace = [&](const std::string& from, const std::string& to) {
      REQUIRE(contains(source, from));
      source.replace(source.find(from), from.size(), to);
    };
    replace("#include <math.h>\n", "#include <fcntl.h>\n#include <math.h>\n#include <unistd.h>\n");
    replace("(void)call;",
            fmt::format("close(open(\"{}\", O_CREAT | O_WRONLY, 0600)); usleep(300000);", running.string()));
    replace("(\"ppo_clip_c\", ", "(\"slow_loss\", ");
    folder.write_manifest(folder.compile("slow_loss", "-Wl,--no-as-needed -lm", source), "slow_loss",
                          {{"version", "1.0.0"}});
  }
  plugin_test::PluginFolder folder;
  toy::fs::path running = folder.path() / "running";
};

const SlowLoss& slow_loss() {
  static const SlowLoss loss;
  toy::fs::remove(loss.running);
  return loss;
}

std::vector<std::string> train(const TempDir& dir, const SlowLoss& loss, const std::vector<std::string>& layout) {
  const std::vector<std::string> slow = {"grpo.num_prompts_per_step=8", "++loss_fn.plugin=slow_loss",
                                         fmt::format("++plugins.paths=[{}]", loss.folder.path().string()),
                                         fmt::format("++cluster.worker_timeout_s={}", kTimeoutS)};
  const auto overrides = first_party::both(first_party::both(first_party::training_alone(), slow), layout);
  return first_party::train(first_party::source() + "/configs/quickstart.yaml", dir, overrides);
}

// The workers by rank, as their logs have it.
std::vector<pid_t> workers_by_rank(pid_t controller) {
  std::map<std::string, pid_t> by_log;
  for (const pid_t pid : toy::workers_of(controller))
    by_log[toy::fs::read_symlink(fmt::format("/proc/{}/fd/1", pid)).filename()] = pid;
  std::vector<pid_t> found;
  for (const auto& [log, pid] : by_log) found.push_back(pid);
  return found;
}

// What the run says after `signal` was sent to `rank` while the loss ran. It ends by itself, in time and with 4, and
// leaves no process.
std::string end_of(const std::vector<std::string>& layout, size_t ranks, size_t rank, int signal) {
  const TempDir dir;
  const SlowLoss& loss = slow_loss();
  toy::Program program(train(dir, loss, layout));
  REQUIRE_MESSAGE(toy::eventually([&] { return toy::fs::exists(loss.running); }), program.err());
  const std::vector<pid_t> workers = workers_by_rank(program.pid());
  REQUIRE(workers.size() == ranks);
  const auto began = std::chrono::steady_clock::now();
  ::kill(workers[rank], signal);
  const toy::Ended run = program.wait();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  INFO(run.err);
  CHECK(seconds < kDeadlineS);
  CHECK(run.code == 4);
  CHECK(toy::eventually([&] { return std::ranges::none_of(workers, toy::alive); }));
  CHECK(contains(run.err, fmt::format("(pid {}) ", workers[rank])));
  CHECK(contains(run.err, "; last call 'train', "));
  CHECK(contains(run.err, fmt::format("logs/exp_001/worker-{}.log", rank)));
  return run.err;
}

const std::vector<std::string> kMegatron = {
    "policy.megatron_cfg.enabled=true", "++policy.megatron_cfg.tensor_model_parallel_size=2",
    "++policy.megatron_cfg.pipeline_model_parallel_size=2", "cluster.gpus_per_node=4"};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a rank that is killed in a step of TP2 and PP2 ends the run at once") {
  const std::string error = end_of(kMegatron, 4, 1, SIGKILL);
  CHECK_MESSAGE(contains(error, "hexad: rank 1 on "), error);
  CHECK_MESSAGE(contains(error, " ended: killed by signal 9 (Killed); last call 'train'"), error);
  CHECK_MESSAGE(contains(error, "missing: rank 1 (no answer: it ended, or was stopped)"), error);
}

// Rank 0 keeps the store by which the others ask each other where they are.
TEST_CASE("a rank that is stopped in a step of TP2 and PP2 ends the run in time") {
  const std::string error = end_of(kMegatron, 4, 0, SIGSTOP);
  CHECK_MESSAGE(contains(error, "hexad: rank 0 on "), error);
  CHECK_MESSAGE(contains(error, " gave no sign of life for "), error);
  CHECK_MESSAGE(contains(error, "\n      rank 1: backend 'megatron'"), error);
  CHECK_MESSAGE(contains(error, "over group 'tp.backend0' of ranks [0, 1] failed; missing: rank 0 ("), error);
}

TEST_CASE("a rank that is stopped in a step of dtensor ends the run in time") {
  const std::string error = end_of({"cluster.gpus_per_node=2"}, 2, 1, SIGSTOP);
  CHECK_MESSAGE(contains(error, "hexad: rank 1 on "), error);
  CHECK_MESSAGE(contains(error, " gave no sign of life for "), error);
  CHECK_MESSAGE(contains(error, "reduce-scatter over group 'world' of ranks [0, 1] failed; missing: rank 1 ("), error);
}

TEST_SUITE_END();
