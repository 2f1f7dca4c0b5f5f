// report.html: one file that needs nothing else, for runs of every kind.
#include "app/report/report.hpp"

#include <limits>

#include "core/telemetry/run_log.hpp"
#include "tests/support/logged.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::error_of;
using plugin_test::Json;
using report::write_report;
using telemetry::RunLog;

namespace {

// The report of a run directory.
std::string page_of(const std::filesystem::path& directory) {
  write_report(directory);
  return plugin_test::read_text(directory / "report.html");
}

// What the page's script reads of its runs.
Json runs_of(const std::string& page) {
  const std::string begin = "<script id=\"data\" type=\"application/json\">";
  const size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from)).at("runs");
}
Json data_of(const std::string& page) { return runs_of(page).at(0); }

// Opening tags are closed in order, as far as a page without a browser can be judged.
void check_self_contained(const std::string& page) {
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(contains(page, "</html>"));
  for (const char* outside : {" src=", " href=", "@import", "url(", "fetch(", "XMLHttpRequest", "https://"}) {
    CHECK_MESSAGE(!contains(page, outside), outside);
  }
}

}  // namespace

TEST_CASE("the page holds the run's numbers, samples and config, and needs no network") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "grpo: {seed: 1}\n");
  for (int64_t step = 1; step <= 3; ++step) {
    log.add("train",
            {{"reward", 0.25 * static_cast<double>(step)}, {"token_mult_prob_error", 1.001}, {"gen_kl_error", 0.002}});
    log.add("timing/train", {{"total_step_time", 2}, {"generation", 1}});
    test_support::write_samples(log, step, {Json{{"content", fmt::format("</script><b>{}", step)}, {"rewards", 1.0}}});
    log.end_step(step);
  }
  const std::string page = page_of(log.directory());
  check_self_contained(page);
  const Json data = data_of(page);
  CHECK(data.at("steps") == Json{1, 2, 3});
  CHECK(data.at("series").at("train/reward") == Json{0.25, 0.5, 0.75});
  CHECK(data.at("series").at("timing/train/generation").at(0) == 1.0);
  CHECK(data.at("config") == "grpo: {seed: 1}\n");
  CHECK(data.at("settings").at("grpo.seed") == "1");
  CHECK(data.at("name") == dir.path().filename().string() + "/exp_001");
  CHECK(data.at("samples").at(2).at("step") == 3);
  CHECK(data.at("samples").at(2).at("prompt") == "</script><b>3");  // a sample cannot end the element
  for (const char* curve :
       {"train/reward", "validation/accuracy", "train/mean_gen_tokens_per_sample", "train/token_mult_prob_error",
        "train/gen_kl_error", "train/kl_penalty", "train/loss", "validation/val_loss", "validation-default/loss",
        "validation-default/accuracy", "train/grad_norm"}) {
    CHECK_MESSAGE(contains(page, fmt::format("\"{}\"", curve)), curve);
  }
}

TEST_CASE("numbers that are not finite, steps that differ, and a last line that was cut") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log.add("train",
          {{"reward", std::numeric_limits<double>::quiet_NaN()}, {"loss", std::numeric_limits<double>::infinity()}});
  log.end_step(1);
  log.add("validation", {{"accuracy", 0.5}});
  log.end_step(2);
  std::ofstream(log.directory() / "metrics.jsonl", std::ios::app) << "{\"step\": 3, \"train/re";
  const Json data = data_of(page_of(log.directory()));
  CHECK(data.at("steps").size() == 2);
  CHECK(data.at("series").at("train/reward").at(0).is_null());
  CHECK(data.at("series").at("validation/accuracy") == Json{nullptr, 0.5});
  CHECK(data.at("samples").empty());
}

TEST_CASE("one step is enough, none is an error, and an older report is replaced") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  CHECK(contains(error_of([&] { write_report(log.directory()); }),
                 "metrics.jsonl has no steps. Wanted: the directory of a run"));
  CHECK(contains(error_of([&] { write_report(dir / "nowhere"); }), "has no steps"));
  dir.write("exp_001/report.html", "old");
  log.add("train", {{"reward", 1}});
  log.end_step(1);
  const std::string page = page_of(log.directory());
  check_self_contained(page);
  CHECK(data_of(page).at("steps").size() == 1);
  CHECK_FALSE(std::filesystem::exists(dir / "exp_001/report.html.tmp"));
}

TEST_CASE("a page that cannot be written is an error with the reason, and leaves nothing") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log.add("train", {{"reward", 1}});
  log.end_step(1);
  const std::vector<report::RunRecord> runs = {report::read_run(log.directory())};
  const auto error = [&](const std::filesystem::path& file) {
    return error_of([&] { report::write_page(runs, file); });
  };
  CHECK(error(dir / "none/x.html") ==
        fmt::format("report: cannot write {}: No such file or directory", (dir / "none/x.html").string()));
  CHECK(contains(error(log.directory()), "exp_001: Is a directory"));
  CHECK_FALSE(std::filesystem::exists(dir / "exp_001.tmp"));
  std::filesystem::create_directories(dir / "taken.html.tmp/kept");
  CHECK(contains(error(dir / "taken.html"), "taken.html: Is a directory"));
}

TEST_CASE("what is no ordinary file is written, not replaced") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log.add("train", {{"reward", 1}});
  log.end_step(1);
  const std::vector<report::RunRecord> runs = {report::read_run(log.directory())};
  std::filesystem::create_symlink("page.html", dir / "link.html");
  CHECK(error_of([&] { report::write_page(runs, dir / "link.html"); }) ==
        fmt::format("report: cannot write {}: it is a symbolic link, and nothing is written through one. Remove the "
                    "link, or name its target",
                    (dir / "link.html").string()));
  CHECK_FALSE(std::filesystem::exists(dir / "page.html"));
  std::filesystem::create_symlink("/dev/full", dir / "full.html");
  CHECK(contains(error_of([&] { report::write_page(runs, dir / "full.html"); }), "full.html: No space left on device"));
}

TEST_CASE("text of any kind survives in the page") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "name: \"\xff <!-- <script>\"\n");
  log.add("train", {{"reward", 1}});
  test_support::write_samples(log, 1, {Json{{"content", "<!--<script>"}, {"rewards", nullptr}}});
  log.end_step(1);
  const std::string page = page_of(log.directory());
  CHECK(data_of(page).at("samples").at(0).at("prompt") == "<!--<script>");
  const size_t data = page.find("application/json");
  CHECK(page.find("<!--", data) == std::string::npos);  // it would change how the browser reads the script
}

TEST_CASE("several runs share a page, and steps from first to last are sampled") {
  const toy::TempDir dir;
  RunLog first(dir.path(), "grpo: {seed: 1}\n"), second(dir.path(), "grpo: {seed: 2}\n");
  for (int64_t step = 1; step <= 100; ++step) {
    first.add("train", {{"reward", 1}});
    test_support::write_samples(first, step, {Json{{"content", "a"}, {"token_loss_mask", {0.0, 1.0, 1.0}}}});
    first.end_step(step);
  }
  second.add("train", {{"reward", 0}});
  second.end_step(1);
  report::write_page({report::read_run(first.directory()), report::read_run(second.directory())}, dir / "both.html");
  const Json runs = runs_of(plugin_test::read_text(dir / "both.html"));
  REQUIRE(runs.size() == 2);
  CHECK(runs.at(1).at("settings").at("grpo.seed") == "2");
  const Json& lengths = runs.at(0).at("lengths");
  CHECK(lengths.size() == 24);
  CHECK(lengths.front() == Json{{"step", 1}, {"values", {2}}});
  CHECK(lengths.back().at("step") == 100);
  CHECK(runs.at(0).at("samples").size() == 3);  // six steps, shared by two runs
}
