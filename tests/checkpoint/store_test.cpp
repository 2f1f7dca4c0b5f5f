#include "core/checkpoint/store.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "lib/base/error.hpp"
#include "tests/support/report.hpp"
#include "tests/support/small_disk.hpp"

using namespace hexad;
using checkpoint::Store;
using checkpoint::TrainingInfo;
namespace fs = std::filesystem;

namespace {

struct TempStore {
  config::CheckpointingConfig config;
  TempStore() {
    config.checkpoint_dir = (fs::temp_directory_path() / ("hexad-store-" + std::to_string(::getpid()))).string();
    fs::remove_all(config.checkpoint_dir);
    config.save_period = 1;
  }
  ~TempStore() { fs::remove_all(config.checkpoint_dir); }
  fs::path path(const std::string& name) const { return fs::path(config.checkpoint_dir) / name; }
};

void save(Store& store, int64_t step, double accuracy) {
  const fs::path directory = store.begin(step);
  std::ofstream(directory / "policy/weights/model.safetensors") << "weights of " << step;
  TrainingInfo info;
  info.total_steps = step;
  info.loader = {{"epoch", 1}};
  info.identity = {{"model", {{"hidden_size", 64}}}};
  info.metrics["val:accuracy"] = accuracy;
  store.commit(step, info, "grpo: {}\n");
}

}  // namespace

TEST_CASE("a committed step is found again with what was saved") {
  TempStore temp;
  {
    Store store(temp.config);
    CHECK_FALSE(store.latest());
    save(store, 3, 0.5);
  }
  const auto found = Store(temp.config).latest();
  REQUIRE(found);
  CHECK(found->step == 3);
  CHECK(found->info.metrics.at("val:accuracy") == 0.5);
  CHECK(found->info.loader.at("epoch") == 1);
  CHECK(fs::exists(found->directory / "config.yaml"));
  CHECK_FALSE(fs::exists(found->directory / "policy/optimizer"));  // nothing was put there
  CHECK(fs::exists(temp.path("latest_checkpoint_status.json")));
}

TEST_CASE("retention keeps the best, the newer of ties, and the latest") {
  TempStore temp;
  temp.config.keep_top_k = 2;
  Store store(temp.config);
  save(store, 1, 0.9);
  save(store, 2, 0.7);
  save(store, 3, 0.7);
  save(store, 4, 0.1);
  CHECK(fs::exists(temp.path("step_1")));
  CHECK_FALSE(fs::exists(temp.path("step_2")));
  CHECK(fs::exists(temp.path("step_3")));
  CHECK(fs::exists(temp.path("step_4")));
}

TEST_CASE("whatever was half done when the process died, the newest whole step is found") {
  TempStore temp;
  {
    Store store(temp.config);
    save(store, 1, 0.5);
    store.begin(2);  // died while writing
  }
  SUBCASE("while writing") {}
  SUBCASE("between the two renames") { fs::rename(temp.path("step_1"), temp.path("old_step_1")); }
  Store store(temp.config);
  REQUIRE(store.latest());
  CHECK(store.latest()->step == 1);
  CHECK_FALSE(fs::exists(temp.path("tmp_step_2")));
}

TEST_CASE("what a dead process has left and cannot be cleared away is named") {
  TempStore temp;
  { const Store made(temp.config); }
  const SmallDisk mounted(temp.path("tmp_step_3"), 4096);  // which cannot be removed
  if (!mounted) return test_report::skipped("a mount of its own is not allowed");
  CHECK_THROWS_WITH_AS(Store{temp.config},
                       doctest::Contains(fmt::format("checkpointing.checkpoint_dir: cannot clear away {}, left by a "
                                                     "dead run: Device or resource busy. Remove it",
                                                     temp.path("tmp_step_3").string())
                                             .c_str()),
                       Error);
}

TEST_CASE("the checkpoint of another model is refused with the differences") {
  TempStore temp;
  Store store(temp.config);
  save(store, 1, 0.5);
  const auto found = store.latest();
  REQUIRE(found);
  Store::require_same(*found, {{"model", {{"hidden_size", 64}}}});
  CHECK_THROWS_WITH_AS(Store::require_same(*found, {{"model", {{"hidden_size", 128}}}}),
                       doctest::Contains("model.hidden_size: saved 64, now 128"), Error);
}

TEST_CASE("checkpoints that are set aside stay, and the next run begins without them") {
  TempStore temp;
  Store store(temp.config);
  CHECK_FALSE(store.set_aside());  // there are none
  save(store, 2, 0.5);
  save(store, 10, 0.6);
  fs::create_directories(temp.path("step_12/policy"));  // not whole, and not ours to delete
  fs::create_directories(temp.path("run_7"));           // of an earlier run, or somebody's own
  CHECK(store.set_aside() == temp.path("run_8"));
  CHECK_FALSE(store.latest());
  for (const char* kept : {"run_8/step_2/training_info.json", "run_8/step_10/policy/weights/model.safetensors",
                           "run_8/step_12/policy", "run_8/latest_checkpoint_status.json", "run_7"})
    CHECK_MESSAGE(fs::exists(temp.path(kept)), kept);
  save(store, 1, 0.1);
  CHECK(store.latest()->step == 1);
  CHECK(store.set_aside() == temp.path("run_9"));
}

TEST_CASE("a checkpoint that cannot be moved is an error, and the newest stays where it was") {
  TempStore temp;
  Store store(temp.config);
  save(store, 5, 0.5);
  const SmallDisk mounted(temp.path("step_3"), 4096);  // which has no other name
  if (!mounted) return test_report::skipped("a mount of its own is not allowed");
  CHECK_THROWS_WITH_AS(
      store.set_aside(),
      doctest::Contains(fmt::format("checkpointing.resume_if_exists: cannot move the checkpoints of {} "
                                    "to {}: Device or resource busy",
                                    temp.config.checkpoint_dir, temp.path("run_1").string())
                            .c_str()),
      Error);
  CHECK(store.latest()->step == 5);
}

TEST_CASE("a damaged training_info.json is named, with what to do") {
  TempStore temp;
  Store store(temp.config);
  save(store, 1, 0.5);
  std::ofstream(temp.path("step_1") / "training_info.json") << "{";
  CHECK_THROWS_WITH_AS(store.latest(), doctest::Contains("is damaged"), Error);
}

TEST_CASE("of many checkpoints that are damaged the newest are named") {
  TempStore temp;
  for (int step = 0; step < 30; ++step) fs::create_directories(temp.path("step_" + std::to_string(step)));
  Store store(temp.config);
  try {
    store.newest_intact([](const std::string&) {});
    FAIL("found one");
  } catch (const Error& error) {
    const std::string what = error.what();
    CHECK_MESSAGE(what.find("/step_29: ") != what.npos, what);
    CHECK_MESSAGE(what.find("/step_20: ") != what.npos, what);
    CHECK_MESSAGE(what.find("/step_19: ") == what.npos, what);
    CHECK_MESSAGE(what.find("\n  and 20 older ones\n") != what.npos, what);
  }
}

TEST_CASE("two runs do not share a directory") {
  TempStore temp;
  {
    Store store(temp.config);
    save(store, 1, 0.5);
    CHECK_THROWS_WITH_AS(
        Store{temp.config},
        doctest::Contains(fmt::format("checkpointing.checkpoint_dir: {} is in use by another run (pid {} on ",
                                      temp.config.checkpoint_dir, ::getpid())
                              .c_str()),
        Error);
    save(store, 2, 0.5);
  }
  CHECK(Store(temp.config).latest()->step == 2);
}

TEST_CASE("a full disk is named, and what was begun can be removed") {
  TempStore temp;
  Store store(temp.config);
  const fs::path begun = store.begin(1);
  fs::create_symlink("/dev/full", begun / "training_info.json");
  CHECK_THROWS_WITH_AS(store.commit(1, {}, ""),
                       doctest::Contains("training_info.json: cannot be written: No space left on device"), Error);
  store.abandon(1);
  CHECK_FALSE(fs::exists(begun));
  CHECK_FALSE(store.latest());
  save(store, 1, 0.5);
  CHECK(store.latest());
}
