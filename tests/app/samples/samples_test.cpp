// Samples of a run on disk: how many, in which form, what a killed run leaves of them, and how they are read back.
#include <doctest/doctest.h>

#include <set>

#include "app/report/data.hpp"
#include "lib/zst/lines_file.hpp"
#include "tests/support/logged.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;
namespace fs = std::filesystem;
namespace zst = hexad::zst;

namespace {

// Of a file in either form; what is no JSON fails the test.
std::vector<Json> samples(const fs::path& file) {
  const auto found = zst::find_lines(file);
  REQUIRE_MESSAGE(found, file.string());
  if (found == file) return lines(file);
  std::vector<Json> all;
  zst::read_lines(*found, [&](std::string_view line) {
    all.push_back(Json::parse(line));
    return true;
  });
  return all;
}

// 4,096 samples a step, more than a megabyte.
Arguments large(const TempDir& dir, const std::string& steps) {
  return train(
      dir, {"grpo.num_prompts_per_step=64", "grpo.num_generations_per_prompt=64", "policy.train_global_batch_size=4096",
            "checkpointing.enabled=false", "grpo.max_num_steps=" + steps});
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("so many samples of a step and of a validation are written as are asked for, and told to trackers") {
  for (const int count : {3, 0}) {
    const TempDir dir;
    const Ended run = toy::run(
        train(dir, {fmt::format("++logger.samples_per_step={}", count), "grpo.max_num_steps=2", "grpo.val_period=1",
                    "checkpointing.enabled=false",
                    fmt::format("++logger.trackers={{name: mine, command: 'cat > {}'}}", (dir / "told").string())}));
    INFO(run.err);
    REQUIRE(run.code == 0);
    std::vector<size_t> tables;
    for (const Json& event : lines(dir / "told"))
      if (event.at("event") == "samples") tables.push_back(event.at("rows").size());
    CHECK(tables == std::vector<size_t>(count > 0 ? 4 : 0, 3));
    for (const char* name : {"train_data_step1.jsonl", "train_data_step2.jsonl", "val_data_step2.jsonl"}) {
      const fs::path file = dir / "logs/exp_001" / name;
      CHECK(fs::exists(file) == (count > 0));
      if (count == 0) continue;
      const std::vector<Json> written = samples(file);
      REQUIRE(written.size() == 3);
      CHECK(written[0].value("step_response_lengths", Json()).size() ==
            (std::string_view(name).starts_with("train") ? 64 : 0));  // of all, as few as are written
      CHECK_FALSE(written[1].contains("step_response_lengths"));
      std::set<Json> prompts;
      for (const Json& sample : written) {
        prompts.insert(sample.at("content"));
        if (std::string_view(name).starts_with("train"))
          CHECK(sample.at("tokens").size() == sample.at("token_ids").size());
      }
      CHECK(prompts.size() == 3);  // from all over the batch
    }
  }
}

TEST_CASE("a step of more than a megabyte is a frame of zstd, which the report reads") {
  const TempDir dir;
  const Ended run = toy::run(large(dir, "2"));
  INFO(run.err);
  REQUIRE(run.code == 0);
  for (const int step : {1, 2}) {
    const fs::path file = dir / fmt::format("logs/exp_001/train_data_step{}.jsonl", step);
    CHECK_FALSE(fs::exists(file));
    const std::vector<Json> written = samples(file);
    REQUIRE(written.size() == 4096);
    for (const Json& sample : written) {
      const size_t tokens = sample.at("token_ids").size();
      REQUIRE(tokens == sample.at("input_lengths"));
      for (const char* list : {"token_loss_mask", "advantages", "generation_logprobs", "prev_logprobs"})
        REQUIRE(sample.at(list).size() == tokens);
    }
  }
  const Json data = hexad::report::samples_data(hexad::report::read_run(dir / "logs/exp_001"), 1);
  REQUIRE(data.at("lengths").size() == 2);
  CHECK(data.at("lengths")[0].at("values").size() > 800);
  CHECK(data.at("samples").size() == 32);
  CHECK(contains(toy::read_text(dir / "logs/exp_001/report.html"), R"("samples":[{"step":1,)"));
}

TEST_CASE("killed -9, a run leaves the samples of all steps but the last whole") {
  const TempDir dir;
  Program run(large(dir, "100000"));
  const fs::path third = dir / "logs/exp_001/train_data_step3.jsonl";
  REQUIRE(toy::eventually([&] { return zst::find_lines(third).has_value(); }));
  ::kill(run.pid(), SIGKILL);
  CHECK(run.wait().code == -SIGKILL);
  for (const int step : {1, 2})
    CHECK(samples(dir / fmt::format("logs/exp_001/train_data_step{}.jsonl", step)).size() == 4096);
}

TEST_CASE("of a file that a killed run left cut, the report has the whole lines") {
  const TempDir dir;
  hexad::telemetry::RunLog log(dir.path(), "");
  std::vector<Json> many;
  for (int i = 0; i < 20'000; ++i)
    many.push_back({{"content", fmt::format("sample {} {}", i, std::string(100, 'x'))}, {"token_loss_mask", {0, 1}}});
  test_support::write_samples(log, 1, many);
  log.end_step(1);
  const fs::path packed = log.directory() / "train_data_step1.jsonl.zst";
  REQUIRE(fs::exists(packed));
  const auto lengths = [&] {
    const Json data = hexad::report::samples_data(hexad::report::read_run(log.directory()), 1);
    return data.at("lengths").empty() ? 0 : data.at("lengths")[0].at("values").size();
  };
  CHECK(lengths() == 1000);  // every 20th
  fs::resize_file(packed, fs::file_size(packed) * 3 / 4);
  CHECK(lengths() > 500);
  CHECK(hexad::report::read_json_lines(packed).size() < many.size());
}

TEST_CASE("lengths and samples are of a whole step, however long its log; lengths of an older one say where not") {
  const TempDir dir;
  hexad::telemetry::RunLog log(dir.path(), "");
  const Json sample = {{"content", std::string(1 << 20, 'x')}, {"token_loss_mask", {0, 1, 1}}};
  std::vector<Json> many(20, sample);
  test_support::write_samples(log, 1, many);
  std::vector<int> all(20, 2);
  all.resize(500, 70);
  many[0]["step_response_lengths"] = all;
  many[18]["tokens"] = {"a", "b", "c"};
  test_support::write_samples(log, 2, many);
  log.end_step(1);
  log.end_step(2);
  const Json data = hexad::report::samples_data(hexad::report::read_run(log.directory()), 1);
  const Json& lengths = data.at("lengths");
  REQUIRE(lengths.size() == 2);
  CHECK(lengths[0] == Json{{"step", 1}, {"values", std::vector<int>(16, 2)}, {"first", 16}});
  CHECK(lengths[1] == Json{{"step", 2}, {"values", all}});
  const Json& samples = data.at("samples");
  REQUIRE(samples.size() == 17);  // 16 of the first step
  CHECK(samples[16].at("step") == 2);
  CHECK(samples[16].at("row") == 18);
}
