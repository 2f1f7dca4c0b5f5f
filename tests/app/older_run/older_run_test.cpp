// A run that an older version has left (README.md): this version reads its configuration, goes on from its
// checkpoint, which has neither sizes nor checksums, and reads its log.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "tests/support/toy/train.hpp"

using namespace toy::names;
namespace fs = toy::fs;

namespace {

constexpr int kSaved = 2, kLast = 6;  // the step of the checkpoint, and of the end

void copy(const std::vector<const char*>& names, const TempDir& to) {
  for (const char* name : names)
    fs::copy(toy::source_dir() / "tests/app/older_run" / name, to / name, fs::copy_options::recursive);
}

// What a run begins with, and what the older one has left.
void copy_inputs(const TempDir& to) { copy({"toy.yaml", "rows.jsonl", "model"}, to); }
void copy_run(const TempDir& to) {
  copy_inputs(to);
  copy({"checkpoints", "logs"}, to);
}

// `hexad` started in the folder, as the paths of the older run begin there.
Ended run_in(const TempDir& dir, const toy::Arguments& arguments) {
  return toy::Program({"env", "-C", dir.path().string(), toy::hexad().string()}, arguments, "").wait();
}

Ended train_in(const TempDir& dir) {
  return run_in(dir, {"train", "toy.yaml", fmt::format("grpo.max_num_steps={}", kLast),
                      fmt::format("plugins.paths=[{}]", toy::plugins().string())});
}

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<float> numbers(const std::string& bytes) {
  std::vector<float> found(bytes.size() / sizeof(float));
  std::memcpy(found.data(), bytes.data(), found.size() * sizeof(float));
  return found;
}

// |a - b| <= 1e-5 |b|: not bit for bit, as the older run's exp() and log() were another processor's.
void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    size += std::pow(double{b[i]}, 2);
  }
  CHECK(size > 0);
  CHECK(std::sqrt(difference) <= 1e-5 * std::sqrt(size));
}

// What was computed in a step: all but when and how fast. Metrics of the older version that are gone are left out.
void check_same_step(const Json& step, const Json& wanted) {
  REQUIRE(step.at("step") == wanted.at("step"));
  CAPTURE(step.at("step").get<int>());
  size_t compared = 0;
  for (const auto& [name, value] : step.items()) {
    if (!name.starts_with("train/") && !name.starts_with("validation/")) continue;
    if (!wanted.contains(name) || !value.is_number()) continue;
    CHECK_MESSAGE(value.get<double>() == doctest::Approx(wanted.at(name).get<double>()).epsilon(1e-5), name);
    ++compared;
  }
  CHECK(compared > 30);
  for (const char* name : {"train/reward", "train/loss", "train/grad_norm"}) CHECK_MESSAGE(step.contains(name), name);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("an older version's run goes on, and ends as if this version had made all of its steps") {
  const TempDir dir, undisturbed;
  copy_inputs(undisturbed);
  copy_run(dir);
  const Ended whole = train_in(undisturbed);
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  const std::string log = toy::read_text(dir / "logs/exp_001/metrics.jsonl");

  const Ended run = train_in(dir);
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(contains(run.err, fmt::format("\nresumed from checkpoints/step_{0} (step {0})\n", kSaved)));
  CHECK(times(run.err, "note: that checkpoint has no checksums (") == 1);
  CHECK(contains(run.err, fmt::format("changed since: grpo.max_num_steps: saved {}, now {}", kSaved, kLast)));
  CHECK_FALSE(contains(run.err, fmt::format("step {}/{}", kSaved, kLast)));
  check_close(numbers(weights(dir, kSaved)), numbers(weights(undisturbed, kSaved)));
  check_close(numbers(weights(dir, kLast)), numbers(weights(undisturbed, kLast)));

  CHECK(toy::read_text(dir / "logs/exp_001/metrics.jsonl") == log);
  std::vector<Json> steps = lines(dir / "logs/exp_001/metrics.jsonl");
  for (const Json& step : lines(dir / "logs/exp_002/metrics.jsonl")) steps.push_back(step);
  const std::vector<Json> wanted = lines(undisturbed / "logs/exp_001/metrics.jsonl");
  REQUIRE(steps.size() == kLast);
  REQUIRE(wanted.size() == kLast);
  for (size_t i = 0; i < wanted.size(); ++i) check_same_step(steps[i], wanted[i]);

  const Ended list = run_in(dir, {"checkpoint", "list", "checkpoints"});
  CHECK_MESSAGE(contains(list.out, "checkpoints/step_2: step 2, epoch 0, 16 samples; no sizes and no checksums\n"),
                list.out);
  CHECK_MESSAGE(contains(list.out, " MB, checksums\n"), list.out);
  const Ended verified = run_in(dir, {"checkpoint", "verify", "checkpoints"});
  CHECK(verified.code == 0);
  CHECK(verified.out == "checkpoints/step_2: no checksums\ncheckpoints/step_4: intact\ncheckpoints/step_6: intact\n");
  const Json json = Json::parse(run_in(dir, {"report", "--json", "logs/exp_001", "logs/exp_002"}).out);
  CHECK(json.at("train/reward").size() == kLast);
}

TEST_CASE(
    "an older version's log becomes a page, a comparison and JSON; its checkpoint is listed and cannot be verified") {
  const TempDir dir;
  copy_run(dir);
  const Ended page = run_in(dir, {"report", "logs/exp_001"});
  CHECK(page.code == 0);
  CHECK_MESSAGE(page.out == "logs/exp_001/report.html\n", page.err);
  CHECK(contains(toy::read_text(dir / "logs/exp_001/report.html"), "train/grad_norm"));
  const Ended json = run_in(dir, {"report", "--json", "logs/exp_001"});
  REQUIRE_MESSAGE(json.code == 0, json.err);
  const Json metrics = Json::parse(json.out);
  for (const Json& step : lines(dir / "logs/exp_001/metrics.jsonl"))
    CHECK(metrics.at("train/reward").at(std::to_string(step.at("step").get<int>())) == step.at("train/reward"));
  CHECK(metrics.at("validation/accuracy").size() == 1);
  CHECK(run_in(dir, {"report", "--compare", "logs/exp_001", "logs/exp_001"}).code == 0);

  const Json list = Json::parse(run_in(dir, {"checkpoint", "list", "--json", "checkpoints"}).out);
  REQUIRE(list.size() == 1);
  CHECK(list[0].at("step") == kSaved);
  CHECK(list[0].at("checksums") == false);
  CHECK(list[0].at("files") == 0);
  CHECK(list[0].at("metrics").contains("train:reward"));
  const Ended verified = run_in(dir, {"checkpoint", "verify", "--json", "checkpoints/step_2"});
  CHECK(verified.code == 0);
  CHECK(Json::parse(verified.out).at(0).at("state") == "no checksums");
}

TEST_CASE("an older version's checkpoint that is damaged is refused by name, as far as it can be known") {
  const auto refused = [](const char* file, uintmax_t bytes, const std::vector<std::string>& says) {
    const TempDir dir;
    copy_run(dir);
    fs::resize_file(dir / "checkpoints/step_2" / file, bytes);
    const Ended run = train_in(dir);
    CHECK(run.code != 0);
    for (const std::string& part : says) CHECK_MESSAGE(contains(run.err, part), run.err << "\nwanted: " << part);
    CHECK_FALSE(contains(run.err, "internal"));
    CHECK(lines(dir / "logs/exp_001/metrics.jsonl").size() == kSaved);
    CHECK(fs::exists(dir / "checkpoints/step_2" / file));
  };
  refused("policy/weights/toy.bin", 3,
          {"toy.bin is too short",
           "The checkpoint checkpoints/step_2 has no checksums. If it is damaged, restore it from a copy, or start "
           "afresh (--fresh keeps it in run_<n>)"});
  refused("training_info.json", 100,
          {"checkpointing.checkpoint_dir: has no checkpoint that is intact:",
           "checkpoints/step_2: checkpoint: checkpoints/step_2/training_info.json is damaged: "});
}

TEST_SUITE_END();
