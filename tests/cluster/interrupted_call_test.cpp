// Calls of a run that is interrupted: which are given up, and what the worker is good for afterwards.
#include <doctest/doctest.h>

#include "core/cluster/process/worker_group.hpp"
#include "lib/base/timer.hpp"
#include "tests/support/toy/program.hpp"
#include "tests/support/toy/workers.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::error_of;
namespace protocol = cluster::protocol;

namespace {

// A rank of its own that hosts the toys; the run is at step 5.
struct One {
  explicit One(const std::string& generator_fault = "") : group(&spawner, options()) {
    group.call(group.all(), toy::start_command("", generator_fault));
    group.call(group.all(), protocol::Refit{.version = 1});
    group.set_step(5);
  }
  cluster::WorkerGroupOptions options() {
    cluster::WorkerGroupOptions options;
    options.program = toy::hexad();
    options.log_dir = dir.path();
    options.call_timeout_s = 120;
    options.interrupted = &interrupted;
    options.has_trained = &has_trained;
    options.has_unsaved = &has_unsaved;
    return options;
  }
  void generate() {
    data::Batch prompts = data::Batch::of_lengths(std::vector<int64_t>{2});
    prompts.set("tokens", data::Tensor::of(std::vector<int32_t>{4, 5}), data::Axis::token);
    for (const char* column : {"group", "seed"})
      prompts.set(column, data::Tensor::of(std::vector<int64_t>{0}), data::Axis::sample);
    prompts.set("max_new_tokens", data::Tensor::of(std::vector<int64_t>{2}), data::Axis::sample);
    group.call(group.all(), protocol::Generate{{.prompts = prompts, .sampling = {}}});
  }

  std::atomic<int> interrupted = 0;
  std::atomic<bool> has_trained = false;
  std::atomic<bool> has_unsaved = false;
  toy::TempDir dir;
  cluster::Spawner spawner;
  cluster::WorkerGroup group;
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("generation is cancelled, and its worker is free for the checkpoint") {
  One one("silence@5:alive");
  one.has_trained = true, one.interrupted = 1;
  CHECK_THROWS_WITH_AS(one.generate(), "interrupted: 'generate' is given up", Interrupted);
  CHECK(one.group.call(one.group.all(), protocol::Refit{.version = 2}).size() == 1);
}

TEST_CASE("what changes weights or the disk is not given up once a step is trained") {
  One one;
  one.has_trained = true, one.interrupted = 1;
  CHECK(one.group.call(one.group.all(), protocol::Refit{.version = 2}).size() == 1);
}

TEST_CASE("before the first step every call is given up, and the workers with it") {
  One one;
  const pid_t pid = one.group.pid(0);
  one.interrupted = 1;
  CHECK_THROWS_WITH_AS(one.group.call(one.group.all(), protocol::Refit{.version = 2}),
                       "interrupted before the first step", Interrupted);
  CHECK(error_of([&] { one.generate(); }) == "cannot call 'generate': the workers have ended");
  one.group.stop();
  CHECK(toy::all_gone({pid}));
}

TEST_CASE("a rank that does not come back after it was cancelled is named by the next call") {
  One one("generate@5:hang");
  const auto seconds = [&] {
    const Stopwatch waited;
    CHECK_THROWS_AS(one.generate(), Interrupted);
    return waited.seconds();
  };
  SUBCASE("within five seconds where there is nothing to save") {
    one.has_trained = true, one.interrupted = 1;
    const double waited = seconds();
    CHECK(waited >= 5);
    CHECK(waited < 10);
  }
  SUBCASE("later where a step is to be saved") {
    one.has_trained = one.has_unsaved = true, one.interrupted = 1;
    CHECK(seconds() >= 15);
  }
  const std::string error = error_of([&] { one.group.call(one.group.all(), protocol::Refit{.version = 2}); });
  CHECK_MESSAGE(error.starts_with("rank 0 on "), error);
  CHECK_MESSAGE(contains(error, "did not come back in time after it was cancelled; last call 'generate'"), error);
}

TEST_SUITE_END();
