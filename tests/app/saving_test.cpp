// Checkpoints and the disk below them: one that is slow, and one that fails where files are synced.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/toy/train.hpp"

using plugin_test::contains;
using toy::Ended;
using toy::TempDir;
using toy::weights;

namespace {

// fsync of a disk: slow by so many milliseconds, or failing.
constexpr const char* kDisk = R"C(
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((visibility("default"))) int fsync(int descriptor) {
  const char *slow = getenv("TOY_DISK_MS"), *error = getenv("TOY_DISK_ERROR");
  if (slow) usleep(1000u * (unsigned)atoi(slow));
  if (error) return errno = atoi(error), -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(descriptor);
}
)C";

// `hexad train` of the toy's config in `dir` on such a disk.
Ended train(const TempDir& dir, const char* variable, const std::string& value, std::vector<std::string> overrides) {
  static const plugin_test::PluginFolder folder;
  static const std::string disk = folder.compile("disk", "-ldl", kDisk).string();
  ::setenv("LD_PRELOAD", disk.c_str(), 1);
  ::setenv(variable, value.c_str(), 1);
  const Ended ended = toy::run(toy::train(dir, std::move(overrides)));
  ::unsetenv("LD_PRELOAD");
  ::unsetenv(variable);
  return ended;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("training goes on while a checkpoint is on the way to a slow disk, unless it is told to wait") {
  const TempDir beside, before;
  const std::string slow = "150";
  const Ended run = train(beside, "TOY_DISK_MS", slow, {});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto place = [](const Ended& of, const std::string& text) {
    const size_t at = of.err.find(text);
    REQUIRE_MESSAGE(at != std::string::npos, text);
    return at;
  };
  CHECK(place(run, "step 3/6 ") < place(run, "checkpoints/step_2\n"));
  CHECK(place(run, "checkpoints/step_2\n") < place(run, "checkpoints/step_4\n"));
  for (int step : {2, 4, 6}) CHECK(weights(beside, step).size() > 0);

  const Ended waiting = train(before, "TOY_DISK_MS", slow, {"++checkpointing.is_async=false"});
  REQUIRE(waiting.code == 0);
  CHECK(place(waiting, "checkpoints/step_2\n") < place(waiting, "step 3/6 "));
  for (int step : {2, 4, 6}) CHECK(weights(beside, step) == weights(before, step));
}

TEST_CASE("a checkpoint that the disk refuses to sync is none, and those before it stay") {
  const TempDir dir;
  const std::vector<std::string> newest = {"checkpointing.keep_top_k=1"};
  REQUIRE(train(dir, "TOY_DISK_MS", "0", {"grpo.max_num_steps=2", newest[0]}).code == 0);
  const Ended run = train(dir, "TOY_DISK_ERROR", std::to_string(EIO), newest);
  INFO(run.err);
  CHECK(run.code != 0);
  CHECK(contains(run.err, "cannot be written: Input/output error"));
  CHECK(weights(dir, 2).size() > 0);
  CHECK_FALSE(toy::fs::exists(dir / "checkpoints/step_4"));
  const Ended full = train(dir, "TOY_DISK_ERROR", std::to_string(ENOSPC), {"grpo.max_num_steps=4", newest[0]});
  CHECK(full.code != 0);  // the last one is tried for half a minute
  CHECK(full.code == 2);
  CHECK(contains(full.err, "step 4 is not saved: "));
  CHECK_MESSAGE(contains(full.err, fmt::format("Free space in checkpointing.checkpoint_dir ({}/checkpoints), and start "
                                               "the run again: it goes on from the newest checkpoint that is there",
                                               dir.path().string())),
                full.err);
  CHECK(toy::lines(dir / "logs/exp_003/metrics.jsonl").size() == 2);  // the last step's too
  CHECK(weights(dir, 2).size() > 0);
  CHECK(train(dir, "TOY_DISK_MS", "0", newest).code == 0);
  CHECK(weights(dir, 6).size() > 0);
}

TEST_CASE("a ranking metric that no step has is told of at the first save, once") {
  const auto notes = [](std::vector<std::string> overrides) {
    const TempDir dir;
    const Ended run = toy::run(toy::train(dir, std::move(overrides)));
    CHECK(run.code == 0);
    CHECK(toy::fs::exists(dir / "checkpoints/step_6"));
    size_t count = 0;
    for (size_t at = 0; (at = run.err.find("note: checkpointing.metric_name: ", at)) != run.err.npos; ++at) ++count;
    return std::pair(count, run.err);
  };
  const char *const validated = "checkpointing.metric_name=val:accuracy", *const unvalidated =
                                                                              "checkpointing.metric_name=train:acuracy";
  const auto [never, text] = notes({validated});
  CHECK(never == 1);
  CHECK_MESSAGE(contains(text,
                         "note: checkpointing.metric_name: step 2 has no 'val:accuracy'; checkpoints without it "
                         "rank last, and of them the newest are kept. To rank this one, validate when you save "
                         "(grpo.val_period, grpo.val_at_end), or set it to null"),
                text);
  const auto [misspelt, other] = notes({unvalidated});
  CHECK(misspelt == 1);
  CHECK_MESSAGE(contains(other, "step 2 has no 'train:acuracy'"), other);
  CHECK_MESSAGE(contains(other, "name one that steps have (metrics.jsonl)"), other);
  CHECK(notes({validated, "grpo.val_period=2"}).first == 0);
  CHECK(notes({unvalidated, "++checkpointing.keep_top_k=null"}).first == 0);
}

TEST_SUITE_END();
