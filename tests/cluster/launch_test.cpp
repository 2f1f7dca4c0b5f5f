// What launchers' environments say, and how their processes meet.
#include "core/cluster/process/launch.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "core/cluster/message/socket.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using cluster::launched;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

namespace fs = std::filesystem;

// The environment has these variables while it lives.
struct Environment {
  explicit Environment(const std::map<std::string, std::string>& all) : variables(all) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
  }
  std::map<std::string, std::string> variables;
};

cluster::Launch two_of(int rank) { return {"torchrun", rank, 2, rank, 2, "127.0.0.1-1-x/y-0"}; }

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("torchrun, srun and mpirun are known by their variables") {
  CHECK_FALSE(launched());
  {
    const Environment torchrun({{"RANK", "5"},
                                {"WORLD_SIZE", "8"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "node0"},
                                {"MASTER_PORT", "29500"},
                                {"TORCHELASTIC_RUN_ID", "none"}});
    const auto launch = launched();
    REQUIRE(launch);
    CHECK(launch->launcher == "torchrun");
    CHECK(launch->rank == 5);
    CHECK(launch->world == 8);
    CHECK(launch->local_rank == 1);
    CHECK(launch->local_world == 4);
    CHECK_FALSE(launch->one_host());
    const Environment again(std::map<std::string, std::string>{{"TORCHELASTIC_RESTART_COUNT", "1"}});
    CHECK(launched()->job != launch->job);
  }
  {
    const Environment srun({{"SLURM_PROCID", "9"},
                            {"SLURM_STEP_NUM_TASKS", "11"},
                            {"SLURM_LOCALID", "1"},
                            {"SLURM_NODEID", "2"},
                            {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
                            {"SLURM_JOB_ID", "17"},
                            {"SLURM_STEP_ID", "3"}});
    const auto launch = launched();
    REQUIRE(launch);
    CHECK(launch->launcher == "srun");
    CHECK(launch->rank == 9);
    CHECK(launch->world == 11);
    CHECK(launch->local_world == 3);
    CHECK(contains(launch->job, "17.3"));
  }
  const Environment mpirun({{"OMPI_COMM_WORLD_RANK", "0"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "277544961"}});
  CHECK(launched()->launcher == "mpirun");
  CHECK(launched()->one_host());
}

TEST_CASE("one process alone starts its workers itself; a script of a Slurm job is no rank") {
  const Environment alone({{"OMPI_COMM_WORLD_RANK", "0"},
                           {"OMPI_COMM_WORLD_SIZE", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  CHECK_FALSE(launched());
  const Environment batch({{"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  CHECK_FALSE(launched());
}

TEST_CASE("half an environment, or one that contradicts itself, is an error that names the variable") {
  {
    const Environment half({{"RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}});
    CHECK(error_of([] { launched(); }) ==
          "torchrun has started this process, and $WORLD_SIZE is '', wanted a number from 0");
  }
  {
    const Environment bad({{"RANK", "1x"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}});
    CHECK(error_of([] { launched(); }) ==
          "torchrun has started this process, and $RANK is '1x', wanted a number from 0");
  }
  const Environment bad({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}});
  CHECK(error_of([] { launched(); }) == "torchrun says rank 2 of 2 and local rank 0 of 2: they do not fit each other");
}

TEST_CASE("ranks meet by a file of the user's alone, which is gone afterwards") {
  const toy::TempDir dir;
  const cluster::KeyPair keys = cluster::make_keys();
  const cluster::Socket socket = cluster::Socket::listen("127.0.0.1", keys);
  fs::path file;
  {
    const cluster::Meeting meeting(two_of(0), dir / "logs", socket.endpoint(), keys.public_key);
    for (const auto& entry : fs::directory_iterator(dir / "logs/.meeting")) file = entry.path();
    struct stat info {};
    REQUIRE(::stat(file.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    REQUIRE(::stat(file.parent_path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
    const cluster::Bootstrap bootstrap = cluster::meet(two_of(1), dir / "logs", 300);
    CHECK(bootstrap.endpoint == socket.endpoint());
    CHECK(bootstrap.server_key == keys.public_key);
    CHECK(bootstrap.rank == 1);
    CHECK(bootstrap.local_rank == 1);
    CHECK(bootstrap.local_world == 2);
    CHECK(bootstrap.controller == "127.0.0.1");
  }
  CHECK_FALSE(fs::exists(file));
  CHECK_FALSE(fs::exists(dir / "logs/.meeting"));
}

TEST_CASE("a rank does not believe what anybody else could have written, and says why") {
  const toy::TempDir dir;
  const cluster::KeyPair keys = cluster::make_keys();
  const cluster::Socket socket = cluster::Socket::listen("127.0.0.1", keys);
  const cluster::Meeting meeting(two_of(0), dir.path(), socket.endpoint(), keys.public_key);
  const fs::path folder = dir / ".meeting", file = folder / "meeting-torchrun-127.0.0.1-1-x_y-0";
  const auto lacked = [&](const std::string& what) {
    const std::string error = error_of([&] { cluster::meet(two_of(1), dir.path(), 0.2); });
    CHECK_MESSAGE(contains(error, file.string() + " is not believed: " + what + ". Wanted: a logger.log_dir"), error);
  };
  fs::permissions(dir.path(), fs::perms::all);  // others may write beside it
  CHECK(cluster::meet(two_of(1), dir.path(), 300).endpoint == socket.endpoint());
  fs::permissions(file, static_cast<fs::perms>(0666));
  lacked(file.string() + " is open to others (mode 0666), wanted 0600");
  fs::permissions(file, static_cast<fs::perms>(0640));
  lacked(file.string() + " is open to others (mode 0640), wanted 0600");
  fs::permissions(file, static_cast<fs::perms>(0600));
  fs::permissions(folder, static_cast<fs::perms>(0770));
  lacked(folder.string() + " is open to others (mode 0770), wanted 0700");
  fs::permissions(folder, static_cast<fs::perms>(0700));

  fs::rename(file, dir / "file");
  fs::create_symlink(dir / "file", file);
  lacked(file.string() + " is a link, wanted a file");
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  lacked(file.string() + " is no file");
  fs::remove(file);
  fs::rename(dir / "file", file);
  if (::geteuid() == 0) {
    REQUIRE(::chown(file.c_str(), 65534, 0) == 0);
    lacked(file.string() + " belongs to user 65534, wanted user 0");
    REQUIRE(::chown(file.c_str(), 0, 0) == 0);
    REQUIRE(::chown(folder.c_str(), 65534, 0) == 0);
    lacked(folder.string() + " belongs to user 65534, wanted user 0");
    REQUIRE(::chown(folder.c_str(), 0, 0) == 0);
  } else {
    test_report::skipped("files of other users take root");
  }
  fs::rename(folder, dir / "folder");
  fs::create_directory_symlink(dir / "folder", folder);
  lacked(folder.string() + " is a link or a file, wanted a folder");
  const std::string error =
      error_of([&] { cluster::Meeting(two_of(0), dir.path(), socket.endpoint(), keys.public_key); });
  CHECK_MESSAGE(contains(error, "find this one: " + folder.string() + " is a link or a file, wanted a folder"), error);
  fs::remove(folder);
  fs::rename(dir / "folder", folder);
  fs::rename(file, dir / "file");
  fs::create_directories(file / "mine");
  const std::string taken =
      error_of([&] { cluster::Meeting(two_of(0), dir.path(), socket.endpoint(), keys.public_key); });
  CHECK_MESSAGE(contains(taken, file.string() + ", by which the other processes of torchrun find this one: Is a dir"),
                taken);
  CHECK_FALSE(fs::exists(file.string() + ".tmp"));
  fs::remove_all(file);
  fs::rename(dir / "file", file);
  CHECK(cluster::meet(two_of(1), dir.path(), 300).endpoint == socket.endpoint());
}

TEST_CASE("a rank that finds nobody says what it lacked") {
  const toy::TempDir dir;
  CHECK(contains(
      error_of([&] { cluster::meet(two_of(1), dir.path(), 0.2); }),
      "rank 1 of 2 (torchrun) has not found the first process within 0 s: " + dir.path().string() +
          "/.meeting/meeting-torchrun-127.0.0.1-1-x_y-0 is not there. Wanted: a logger.log_dir that all hosts see"));
  // Left by a start that was killed: nobody listens there any more.
  const std::string endpoint = "tcp://127.0.0.1:1";
  const cluster::Meeting stale(two_of(0), dir.path(), endpoint, "key");
  CHECK(contains(error_of([&] { cluster::meet(two_of(1), dir.path(), 0.5); }), ", where nobody answers."));
  CHECK(contains(error_of([&] { cluster::Meeting(two_of(0), "/proc/nowhere", endpoint, "key"); }),
                 ", by which the other processes of torchrun find this one"));
}

TEST_CASE("a rank that is told to end gives the first process a moment, and then ends") {
  const toy::TempDir dir;
  const std::atomic<int> interrupted = 1;
  CHECK_THROWS_WITH_AS(cluster::meet(two_of(1), dir.path(), 300, &interrupted),
                       "interrupted while it waited for the first process", Interrupted);
}

TEST_SUITE_END();
