// What a run leaves on disk.
#include "core/telemetry/run_log.hpp"

#include <fcntl.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/telemetry/performance.hpp"
#include "lib/base/json.hpp"
#include "lib/base/timer.hpp"
#include "lib/zst/lines_file.hpp"
#include "tests/support/logged.hpp"
#include "tests/support/report.hpp"
#include "tests/support/said.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/toy/toy.hpp"
#include "tests/support/zst_text.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::error_of;
using plugin_test::Json;
using plugin_test::read_text;
using telemetry::RunLog;
using test_support::log_samples;

namespace {

// While it lives, what is written to an open file finds no room.
class FullFile {
 public:
  explicit FullFile(const toy::fs::path& path) {
    for (const auto& entry : toy::fs::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      if (toy::fs::read_symlink(entry, error) == path) fd_ = std::stoi(entry.path().filename());
    }
    REQUIRE(fd_ >= 0);
    kept_ = ::dup(fd_);
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    REQUIRE(::dup2(full, fd_) == fd_);
    ::close(full);
  }
  ~FullFile() {
    ::dup2(kept_, fd_);
    ::close(kept_);
  }

 private:
  int fd_ = -1, kept_ = -1;
};

std::vector<int64_t> steps_in(const toy::fs::path& metrics) {
  std::vector<int64_t> steps;
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);) steps.push_back(Json::parse(line).at("step"));
  return steps;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

using Steps = std::vector<int64_t>;

}  // namespace

TEST_CASE("every run has a directory of its own with its config") {
  const toy::TempDir dir;
  const RunLog first(dir / "logs", "grpo: {seed: 1}\n"), second(dir / "logs", "grpo: {seed: 2}\n");
  CHECK(first.directory() == dir / "logs/exp_001");
  CHECK(second.directory() == dir / "logs/exp_002");
  CHECK(read_text(dir / "logs/exp_001/config.yaml") == "grpo: {seed: 1}\n");
  CHECK(read_text(dir / "logs/exp_002/config.yaml") == "grpo: {seed: 2}\n");
}

TEST_CASE("a number that is taken is passed over, also by a file") {
  const toy::TempDir dir;
  dir.write("exp_002/config.yaml", "kept");
  CHECK(RunLog(dir.path(), "").directory() == dir / "exp_001");
  CHECK(RunLog(dir.path(), "").directory() == dir / "exp_003");
  CHECK(read_text(dir / "exp_002/config.yaml") == "kept");
  dir.write("exp_004", "a file");
  CHECK(RunLog(dir.path(), "").directory() == dir / "exp_005");
}

TEST_CASE("a directory that cannot be made is an error of logger.log_dir") {
  const toy::TempDir dir;
  dir.write("file", "");
  const std::string refusal = error_of([&] { RunLog(dir / "file/logs", ""); });
  SAYS(refusal, "logger.log_dir: cannot make ");
  CHECK(refusal == error_of([&] { hexad::telemetry::require_run_directory(dir / "file/logs"); }));
}

TEST_CASE("whether a directory can be made is asked without making it") {
  const toy::TempDir dir;
  hexad::telemetry::require_run_directory(dir / "some/logs");
  CHECK_FALSE(std::filesystem::exists(dir / "some"));
  dir.write("logs/exp_001", "a file");
  const auto changed = std::filesystem::last_write_time(dir / "logs");
  hexad::telemetry::require_run_directory(dir / "logs");
  CHECK(std::filesystem::last_write_time(dir / "logs") == changed);
  // To a privileged user nothing is closed but such a disk.
  const SmallDisk disk(dir / "disk", 64 << 10);
  if (!disk) return test_report::skipped("no disk can be mounted here");
  REQUIRE(::mount("none", (dir / "disk").c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  const std::string said = error_of([&] { hexad::telemetry::require_run_directory(dir / "disk"); });
  CHECK(said == "logger.log_dir: cannot make " + (dir / "disk/exp_001").string() + ": Read-only file system");
  CHECK(said == error_of([&] { RunLog(dir / "disk", ""); }));
}

TEST_CASE("a directory whose files find no room is not left behind") {
  const toy::TempDir dir;
  const SmallDisk disk(dir / "disk", 8 << 10);
  if (!disk) return test_report::skipped("no disk can be mounted here");
  SAYS(error_of([&] { RunLog(dir / "disk", std::string(64 << 10, 'x')); }), "No space left on device");
  CHECK(toy::fs::is_empty(dir / "disk"));
}

TEST_CASE("one object a step, in a line of its own that is there at once") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  const auto metrics = dir / "exp_001/metrics.jsonl";
  log.add("train", {{"reward", 0.5}, {"grad_norm", std::numeric_limits<double>::quiet_NaN()}});
  log.add("timing/train", {{"generation", 2}});
  CHECK(read_text(metrics).empty());
  log.end_step(1);
  const Json first = Json::parse(read_text(metrics));
  CHECK(first.at("step") == 1);
  CHECK(first.at("time").get<double>() > 1.6e9);
  CHECK(first.at("train/reward") == 0.5);
  CHECK(first.at("train/grad_norm").is_null());
  CHECK(first.at("timing/train/generation") == 2.0);
  log.add("train", {{"loss", std::numeric_limits<double>::infinity()}});
  log.end_step(2);
  const std::string text = read_text(metrics);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  const Json second = Json::parse(text.substr(text.find('\n') + 1));
  CHECK_FALSE(second.contains("train/reward"));  // of the step before
  CHECK(second.at("train/loss").is_null());
}

TEST_CASE("samples are lines, whatever bytes a model wrote") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  test_support::write_samples(log, 3, {Json{{"content", "a\nb"}}, Json{{"content", "\xff\xfe"}}});
  std::ifstream in(dir / "exp_001/train_data_step3.jsonl");
  std::string line;
  REQUIRE(std::getline(in, line));
  CHECK(Json::parse(line).at("content") == "a\nb");
  REQUIRE(std::getline(in, line));
  CHECK(Json::parse(line).at("content") == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("metrics wait while the disk is full, in order, and one warning says so") {
  const toy::TempDir dir;
  const test_support::Log spoken;
  RunLog log(dir.path(), "");
  const auto metrics = dir / "exp_001/metrics.jsonl";
  log.end_step(1);
  {
    const FullFile full(metrics);
    log.end_step(2);
    log.end_step(3);
    CHECK(log.steps() == 1);
    SAYS(spoken.text(),
         fmt::format("logger.log_dir: cannot write {}: No space left on device. The run goes on and every "
                     "step tries again: metrics wait in memory",
                     metrics.string()));
    SAYS(spoken.text(), "Free space in " + (dir / "exp_001").string());
    CHECK(count(spoken.text(), "\n") == 1);
  }
  log.end_step(4);
  CHECK(steps_in(metrics) == Steps{1, 2, 3, 4});
  CHECK(log.steps() == 4);
  SAYS(spoken.text(), "logger.log_dir: there is room again in ");
  log.end_step(5);
  CHECK(count(spoken.text(), "\n") == 2);
}

TEST_CASE("the end of a run writes what waits, or says what is missing") {
  const toy::TempDir dir;
  const test_support::Log spoken;
  SUBCASE("there is room") {
    {
      std::optional<FullFile> full;
      RunLog log(dir.path(), "");
      full.emplace(dir / "exp_001/metrics.jsonl");
      log.end_step(1);
      log_samples(log, 1, {Json{{"content", "a"}}});
      full.reset();
    }
    CHECK(steps_in(dir / "exp_001/metrics.jsonl") == Steps{1});
    CHECK(read_text(dir / "exp_001/train_data_step1.jsonl") == "{\"content\":\"a\"}\n");
    CHECK_FALSE(contains(spoken.text(), "lacks"));
  }
  SUBCASE("there is none") {
    std::optional<RunLog> log(std::in_place, dir.path(), "");
    const FullFile full(dir / "exp_001/metrics.jsonl");
    for (int step = 3; step <= 5; ++step) {
      log->end_step(step);
      toy::fs::create_symlink("/dev/full", dir / fmt::format("exp_001/train_data_step{}.jsonl", step));
      log_samples(*log, step, {Json{{"content", "a"}}});
    }
    log.reset();
    SAYS(spoken.text(),
         fmt::format("logger.log_dir: {} lacks the metrics of steps 3 to 5, 3 files of samples: there was "
                     "no room",
                     (dir / "exp_001").string()));
  }
}

TEST_CASE("samples wait too, the newest 64 MiB of them, and one that did not fit leaves no file") {
  const toy::TempDir dir;
  const test_support::Log spoken;
  const std::vector<Json> large = {Json{{"content", std::string(20 << 20, 'a')}}};
  const auto file = [&](int step) { return dir / fmt::format("exp_001/train_data_step{}.jsonl", step); };
  {
    RunLog log(dir.path(), "");
    toy::fs::create_symlink("/dev/full", file(1));
    log_samples(log, 1, {Json{{"content", "a"}}});
    log.end_samples();
    CHECK_FALSE(toy::fs::exists(toy::fs::symlink_status(file(1))));
    SAYS(spoken.text(), "The run goes on and every step tries again: metrics wait in memory");
    log.end_step(1);
    log.end_samples();
    CHECK(toy::fs::exists(file(1)));
    SAYS(spoken.text(), "logger.log_dir: there is room again in ");
    toy::fs::create_symlink("/dev/full", file(2).string() + ".zst");
    for (int step = 2; step <= 6; ++step) {
      log_samples(log, step, large);
      if (step == 2) log.end_samples();
    }
    log.end_step(7);
  }
  // The first was refused, and too much came before it was tried again.
  for (int step = 2; step <= 6; ++step) CHECK(zst::find_lines(file(step)).has_value() == (step > 3));
  CHECK(test_support::text_of(file(6).string() + ".zst", SIZE_MAX) == json_text(large[0]) + "\n");
  SAYS(spoken.text(), "lacks 2 files of samples: ");
}

TEST_CASE("a run on a disk that fills up goes on, and its log is whole when there is room again") {
  const toy::TempDir dir;
  const SmallDisk disk(dir / "disk", 128 << 10);
  if (!disk) {
    test_report::skipped("a mount of its own is not allowed");
    return;
  }
  const test_support::Log spoken;
  const auto metrics = dir / "disk/exp_001/metrics.jsonl";
  {
    RunLog log(dir / "disk", "", /*tensorboard=*/true);
    const auto step = [&](int number) {
      log.add("train", {{"reward", number}, {"a metric with a name that takes some room", 0.123456789}});
      log.end_step(number);
      test_support::write_samples(log, number, {Json{{"content", std::string(3000, 'a')}}});
    };
    for (int number = 1; number <= 100; ++number) step(number);
    CHECK(log.steps() < 100);
    const Steps written = steps_in(metrics);  // each line is whole
    CHECK(static_cast<int64_t>(written.size()) == log.steps());
    CHECK(count(spoken.text(), "\n") == 1);
    SAYS(spoken.text(), "; TensorBoard's events are left out. Free space in ");
    for (int number = 1; number <= 30; ++number)
      toy::fs::remove(dir / fmt::format("disk/exp_001/train_data_step{}.jsonl", number));
    step(101);
    Steps all(101);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i) + 1;
    CHECK(steps_in(metrics) == all);
  }
  SAYS(spoken.text(), " events of TensorBoard: there was no room");
}

TEST_CASE("an error that is not a full disk is one, as before") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  toy::fs::create_directory(dir / "exp_001/train_data_step1.jsonl");
  log_samples(log, 1, {});
  CHECK(contains(error_of([&] { log.end_samples(); }), "train_data_step1.jsonl: Is a directory"));
  toy::fs::remove(dir / "exp_001/train_data_step1.jsonl");
}

TEST_CASE("a timer sums by name; scopes nest and repeat") {
  Timer timer;
  {
    const auto total = timer.measure("total_step_time");
    for (int i = 0; i < 2; ++i) {
      const auto part = timer.measure("generation");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  const double total = timer.seconds().at("total_step_time"), part = timer.seconds().at("generation");
  CHECK(part >= 0.02);
  CHECK(part <= total);
  timer.add("generation", 1);
  CHECK(timer.seconds().at("generation") == part + 1);
  timer.reset();
  CHECK(timer.seconds().empty());
}

TEST_CASE("rates are amounts over their times, and over the devices") {
  const telemetry::Metrics seconds = {
      {"total_step_time", 10}, {"policy_training", 4}, {"policy_and_reference_logprobs", 1}, {"generation", 2}};
  const auto rates = telemetry::performance_metrics(
      seconds,
      {.samples = 20, .total_tokens = 1000, .valid_tokens = 600, .devices = 2, .trainers = 2, .generators = 2});
  CHECK(rates.at("samples_per_sec") == 2);
  CHECK(rates.at("samples_per_sec_per_gpu") == 1);
  CHECK(rates.at("tokens_per_sec_per_gpu") == 50);
  CHECK(rates.at("valid_tokens_per_sec_per_gpu") == 30);
  CHECK(rates.at("policy_training_tokens_per_sec_per_gpu") == 125);
  CHECK(rates.at("policy_and_reference_logprobs_tokens_per_sec_per_gpu") == 500);
  CHECK(rates.at("training_worker_group_tokens_per_sec_per_gpu") == 100);
  CHECK(rates.at("generation_tokens_per_sec") == 500);
  CHECK(rates.at("generation_tokens_per_sec_per_gpu") == 250);
  const auto apart = telemetry::performance_metrics(
      seconds,
      {.samples = 20, .total_tokens = 1000, .valid_tokens = 600, .devices = 5, .trainers = 4, .generators = 1});
  CHECK(apart.at("tokens_per_sec_per_gpu") == 20);
  CHECK(apart.at("policy_training_tokens_per_sec_per_gpu") == 62.5);
  CHECK(apart.at("generation_tokens_per_sec_per_gpu") == 500);
  CHECK(telemetry::performance_metrics({{"total_step_time", 0}}, {}).empty());
  CHECK_FALSE(
      telemetry::performance_metrics({{"total_step_time", 1}}, {.samples = 1}).contains("generation_tokens_per_sec"));
}

TEST_CASE("TensorBoard's events are written where that is asked for, without what is not finite") {
  const toy::TempDir dir;
  const auto events = [](const RunLog& log) {
    for (const auto& entry : toy::fs::directory_iterator(log.directory())) {
      if (entry.path().filename().string().starts_with("events.out.tfevents.")) return read_text(entry.path());
    }
    return std::string();
  };
  RunLog with(dir.path(), "", true), without(dir.path(), "");
  with.add("train", {{"reward", 1}, {"grad_norm", NAN}});
  with.end_step(1);
  CHECK(events(without).empty());
  CHECK(count(events(with), "train/reward") == 1);
  CHECK(count(events(with), "train/grad_norm") == 0);
}
