// torchrun's environment, mpirun and srun start the run that `hexad train` starts by itself.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"
#include "tests/run/run_steps.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/report.hpp"

using first_party::source;
using toy::contains;
using toy::Program;
using toy::TempDir;

namespace {

using Words = std::vector<std::string>;

// Three steps of the quickstart on two ranks.
Words quickstart(const TempDir& dir, const Words& more = {}) {
  const Words two = {"grpo.max_num_steps=3", "cluster.gpus_per_node=2"};
  return first_party::both(first_party::train(source() + "/configs/quickstart.yaml", dir,
                                              first_party::both(first_party::training_alone(), two)),
                           more);
}

std::vector<double> rewards(const TempDir& dir) {
  std::vector<double> found;
  for (const auto& step : first_party::steps_of(dir)) found.push_back(step.at("train/reward"));
  return found;
}

// What two local workers do.
const std::vector<double>& expected() {
  static const std::vector<double> of_two = [] {
    const TempDir dir;
    const toy::Ended run = toy::run(quickstart(dir));
    REQUIRE_MESSAGE(run.code == 0, run.err);
    return rewards(dir);
  }();
  return of_two;
}

// `env VARIABLES hexad`: a rank of a launcher that says where it is as torchrun does.
Words as_rank(int rank, int port, int world = 2) {
  return {"env",
          fmt::format("RANK={}", rank),
          fmt::format("WORLD_SIZE={}", world),
          fmt::format("LOCAL_RANK={}", rank),
          fmt::format("LOCAL_WORLD_SIZE={}", world),
          "MASTER_ADDR=127.0.0.1",
          fmt::format("MASTER_PORT={}", port),
          toy::hexad().string()};
}

// `mpirun ... hexad`. As root, on fewer cores than ranks, and on one host (without ssh) it wants to be told so.
Words by_mpirun() {
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated", "-np",
          "2",      toy::hexad().string()};
}

class PrivateSlurm {
 public:
  PrivateSlurm() {
    const Words start = {script(), "start", dir_.path().string(), std::to_string(test_support::free_port()),
                         std::to_string(test_support::free_port())};
    const toy::Ended ended = Program(start, {}, "").wait();
    runs_ = ended.code == 0;
    why_ = ended.out + ended.err;
  }
  ~PrivateSlurm() { Program({script(), "stop", dir_.path().string()}, {}, "").wait(); }
  bool runs() const { return runs_; }
  const std::string& why() const { return why_; }
  Words with_conf(const Words& command) const {
    return first_party::both({"env", "SLURM_CONF=" + (dir_ / "slurm.conf").string()}, command);
  }
  Words srun() const { return with_conf({"srun", "-n2", "--overcommit", toy::hexad().string()}); }
  // `sbatch FILE ARGUMENT...` on one host with two ranks and no GPU; it ends with the job, and as the job did.
  Words sbatch(const std::string& file, const TempDir& dir) const {
    const std::string path = "PATH=" + toy::hexad().parent_path().string() + ":" + std::getenv("PATH");
    return first_party::both({"env", path}, with_conf({"sbatch", "--wait", "--overcommit", "--nodes=1",
                                                       "--ntasks-per-node=2", "--gpus-per-node=0", "--cpus-per-task=1",
                                                       "--output=" + (dir / "job.out").string(), file}));
  }

 private:
  static std::string script() { return source() + "/tests/run/private_slurm.sh"; }
  TempDir dir_;
  bool runs_ = false;
  std::string why_;
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("two processes in torchrun's environment are one run of two ranks") {
  const TempDir dir;
  const int port = test_support::free_port();
  Program second(as_rank(1, port), quickstart(dir), ""), first(as_rank(0, port), quickstart(dir), "");
  const toy::Ended one = first.wait(), other = second.wait();
  CHECK_MESSAGE(one.code == 0, one.err);
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK(rewards(dir) == expected());
  for (const auto& entry : toy::fs::directory_iterator(dir / "logs"))
    CHECK_MESSAGE(entry.is_directory(), entry.path());  // by what they met is gone
}

TEST_CASE("mpirun starts the same run") {
  const TempDir dir;
  const toy::Ended run = Program(by_mpirun(), quickstart(dir), "").wait();
  CHECK_MESSAGE(run.code == 0, run.err << "\n(tools/setup.sh --tests installs mpirun)");
  CHECK(rewards(dir) == expected());
}

TEST_CASE("srun starts the same run") {
  const PrivateSlurm slurm;
  if (!slurm.runs()) return test_report::skipped("no Slurm of one's own can be started here: " + slurm.why());
  const TempDir dir;
  const toy::Ended run = Program(slurm.srun(), quickstart(dir), "").wait();
  CHECK_MESSAGE(run.code == 0, run.err);
  CHECK(rewards(dir) == expected());
}

TEST_CASE("the sbatch file of the examples starts the same run") {
  const PrivateSlurm slurm;
  if (!slurm.runs()) return test_report::skipped("no Slurm of one's own can be started here: " + slurm.why());
  const TempDir dir;
  const Words job = slurm.sbatch(source() + "/docs/examples/slurm.sbatch", dir);
  Words arguments = quickstart(dir);
  arguments.erase(arguments.begin());  // "train", which the file says
  const toy::Ended run = Program(job, arguments, "").wait();
  CHECK_MESSAGE(run.code == 0, run.err << toy::read_text(dir / "job.out"));
  CHECK(rewards(dir) == expected());
}

TEST_CASE("a launcher that starts another number of processes than the config has ranks is told so") {
  const TempDir dir;
  const toy::Ended run = Program(as_rank(1, 1, 3), quickstart(dir), "").wait();
  CHECK(run.code == 2);
  CHECK_MESSAGE(contains(run.err,
                         "torchrun has started 3 processes, and the config has 2 ranks (cluster.num_nodes 1 x "
                         "cluster.gpus_per_node 2): make them equal"),
                run.err);
}

TEST_CASE("ranks of a launcher end when the first process is killed") {
  const TempDir dir;
  const int port = test_support::free_port();
  const Words many = {"grpo.max_num_steps=1000"};
  Program second(as_rank(1, port), quickstart(dir, many), ""), first(as_rank(0, port), quickstart(dir, many), "");
  REQUIRE(toy::eventually([&] { return contains(first.err(), "step 2/"); }));
  ::kill(first.pid(), SIGKILL);
  const toy::Ended other = second.wait();
  CHECK(other.code == 4);
  CHECK_MESSAGE(contains(other.err, "rank 1 has lost the first process (tcp://127.0.0.1:"), other.err);
}

TEST_CASE("signals of a job are the first process's to act on") {
  const TempDir dir;
  const int port = test_support::free_port();
  const Words many = {"grpo.max_num_steps=1000"};
  Program second(as_rank(1, port), quickstart(dir, many), ""), first(as_rank(0, port), quickstart(dir, many), "");
  REQUIRE(toy::eventually([&] { return contains(first.err(), "step 2/"); }));
  for (const int signal : {SIGUSR1, SIGHUP, SIGINT, SIGTERM}) ::kill(second.pid(), signal);
  REQUIRE(toy::eventually([&] { return contains(first.err(), "step 4/"); }));
  for (const Program* each : {&first, &second}) ::kill(each->pid(), SIGTERM);
  const toy::Ended one = first.wait(), other = second.wait();
  CHECK_MESSAGE(one.code == 130, one.err);
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK_MESSAGE(contains(one.out, "interrupted"), one.out);
}

TEST_CASE("the first process ends, and says why, when a rank of its launcher is killed") {
  const TempDir dir;
  const int port = test_support::free_port();
  const Words many = {"grpo.max_num_steps=1000", "++cluster.worker_timeout_s=20"};
  Program second(as_rank(1, port), quickstart(dir, many), ""), first(as_rank(0, port), quickstart(dir, many), "");
  REQUIRE(toy::eventually([&] { return contains(first.err(), "step 2/"); }));
  ::kill(second.pid(), SIGKILL);
  const toy::Ended run = first.wait();
  CHECK(run.code == 4);
  CHECK_MESSAGE(contains(run.err, "rank 1"), run.err);
}

TEST_SUITE_END();
