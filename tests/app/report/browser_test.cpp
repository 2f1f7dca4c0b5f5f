// report.html in a real browser, where this machine has Chromium: its script runs, and what a model wrote stays text.
#include <array>
#include <cmath>
#include <cstdio>

#include "app/report/report.hpp"
#include "core/telemetry/run_log.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::Json;
using telemetry::RunLog;

namespace {

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> piece;
  for (size_t count; (count = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), count);
  ::pclose(pipe);
  return text;
}

// The page's elements after its script ran, and what it wrote on the browser's console.
std::string rendered(const std::filesystem::path& page, const std::filesystem::path& scratch) {
  return output_of(fmt::format(
      "timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir={} --enable-logging=stderr "
      "--virtual-time-budget=3000 --window-size=1200,6000 --dump-dom file://{} 2>&1",
      (scratch / "profile").string(), page.string()));
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const std::string kHostile =
    "</script><script>document.title='taken'</script><img src=x "
    "onerror=\"document.title='taken'\">'\"`${1}\x1b[2J\u202e"
    "\u2028 &lt; \U0001f600" +
    std::string(5000, 'x');

bool has_browser() {
  const bool has = std::system("command -v chromium > /dev/null 2>&1") == 0;
  if (!has) test_report::skipped("there is no chromium");
  return has;
}

// What a chart shows beside its title.
std::string in_head(const std::string& page, const std::string& title) {
  const std::string before = "<h3>" + title + "</h3><span class=\"soft\">";
  const size_t from = page.find(before);
  REQUIRE_MESSAGE(from != std::string::npos, title);
  return page.substr(from + before.size(), page.find('<', from + before.size()) - from - before.size());
}

}  // namespace

TEST_CASE("the page draws a run in a browser, and hostile text is harmless") {
  if (!has_browser()) return;
  const toy::TempDir dir;
  RunLog log(dir.path(), "name: \"</pre><script>\"\n");
  for (int64_t step = 1; step <= 60; ++step) {
    log.add("train", {{"reward", std::sin(static_cast<double>(step))}, {"loss", step == 5 ? NAN : 1.0}});
    log.add("timing/train", {{"total_step_time", 2}, {"generation", 1}});
    log.samples("train_data", step,
                {Json{{"content", kHostile},
                      {"response", kHostile},
                      {"rewards", step == 1 ? Json() : Json(1.0)},
                      {"token_ids", {1, 2, 3}},
                      {"tokens", {"<q>", kHostile, "!"}},
                      {"token_loss_mask", {0.0, 1.0, 0.0}},
                      {"generation_logprobs", {0.0, -1.0, 0.0}},
                      {"prev_logprobs", {0.0, -2.0, 0.0}}}});
    log.end_step(step);
  }
  const report::RunRecord run = report::read_run(log.directory());
  for (size_t runs : {1, 2}) {
    report::write_page(std::vector(runs, run), dir / "page.html");
    const std::string page = rendered(dir / "page.html", dir.path());
    CHECK_MESSAGE(!contains(page, ":CONSOLE"), page.substr(0, 2000));
    CHECK(contains(page, "exp_001"));
    CHECK_FALSE(contains(page, "<title>taken"));
    CHECK_FALSE(contains(page, "<img"));
    CHECK(count_of(page, "aria-label=\"Reward\"") == 1);
    CHECK(count_of(page, "class=\"raw\"") >= runs);  // a faint line behind each smoothed one
    CHECK(contains(page, "aria-label=\"step time by part\""));
    CHECK(
        contains(page, " 520\" role=\"img\" aria-label=\"histograms of response lengths\""));  // rows that do not touch
    CHECK_FALSE(contains(page, "_part\" hidden"));
    CHECK(contains(page, "style=\"background: rgba(var(--hot)"));  // one nat of mismatch
    CHECK(contains(page, "token given"));                          // not written by the model
    CHECK(contains(page, "\u27e8202e\u27e9"));                     // would turn the line around
  }
}

TEST_CASE("where prev_logprobs were not computed the page says so, and shows no mismatch") {
  if (!has_browser()) return;
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log.add("train", {{"reward", 1}});
  log.samples("train_data", 1,
              {Json{{"content", "ab"},
                    {"response", "b"},
                    {"rewards", 1.0},
                    {"token_ids", {1, 2}},
                    {"tokens", {"a", "b"}},
                    {"token_loss_mask", {0.0, 1.0}},
                    {"generation_logprobs", {0.0, -11.0}},
                    {"prev_logprobs", nullptr}}});
  log.end_step(1);
  report::write_report(log.directory());
  const std::string page = rendered(log.directory() / "report.html", dir.path());
  CHECK_MESSAGE(!contains(page, ":CONSOLE"), page.substr(0, 2000));
  CHECK(contains(page, "worst mismatch <b>not computed</b>"));
  CHECK(contains(page, "not computed: nothing in this run needs prev_logprobs"));
  CHECK_FALSE(contains(page, "style=\"background: rgba(var(--hot)"));
}

TEST_CASE("a sample has what was expected, its verdict and why") {
  if (!has_browser()) return;
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log.add("train", {{"reward", 1}});
  const auto sample = [](const Json& more) {
    Json line = {{"content", "ab"},          {"response", "b"},     {"rewards", 0.5},
                 {"expected_answer", "<b>"}, {"token_ids", {1, 2}}, {"token_loss_mask", {0.0, 1.0}},
                 {"sample_loss_mask", 1.0},  {"truncated", false},  {"advantages", {0.0, 0.0}}};
    line.update(more);
    return line;
  };
  log.samples("train_data", 1,
              {sample({{"components", {{"tests", 1.0}, {"style", 0.0}}}, {"advantages", {1.5, 1.5}}}),
               sample({{"truncated", true}, {"sample_loss_mask", 0.0}})});
  log.samples("train_data", 2, {sample({}), sample({{"rewards", nullptr}, {"sample_loss_mask", 0.0}})});
  log.end_step(1);
  log.end_step(2);
  for (const int step : {1, 2}) {  // two are open
    report::write_report(log.directory());
    const std::string page = rendered(log.directory() / "report.html", dir.path());
    CHECK_MESSAGE(!contains(page, ":CONSOLE"), page.substr(0, 2000));
    CHECK(contains(page, ">expected answer</span>&lt;b&gt;<span"));
    if (step == 1) {  // the newest come first
      CHECK(contains(page, ">verdict</span>reward 0.5; advantage 0: no better or worse than the others of its prompt"));
      CHECK(contains(page, ">verdict</span>not scored; counts nowhere<"));
    } else {
      CHECK(contains(page, ">verdict</span>reward 0.5; of tests 1, style 0; advantage 1.5: made more likely<"));
      CHECK(contains(page, ">verdict</span>reward 0.5; cut off by the token limit; left out of the loss<"));
    }
    toy::fs::remove(log.directory() / "train_data_step2.jsonl");
  }
}

TEST_CASE("a resumed run of preferences shows its losses, and nothing of what it lacks") {
  if (!has_browser()) return;
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  for (int64_t step = 80; step <= 140; ++step) {
    if (step % 10 == 0) log.add("validation-default", {{"loss", step < 140 ? 0.7 : 0.2}, {"accuracy", 0.75}});
    if (step > 80) {
      log.add("train", {{"loss", 0.5}, {"accuracy", 0.875}, {"lr", 0.001}});
      log.add("timing/train", {{"total_step_time", 2}});
      log.add("performance", {{"tokens_per_sec", step < 140 ? 90000 : 30000}});  // a checkpoint fell into the last
    }
    log.end_step(step);
  }
  report::write_report(log.directory());
  const std::string page = rendered(log.directory() / "report.html", dir.path());
  CHECK_MESSAGE(!contains(page, ":CONSOLE"), page.substr(0, 2000));
  CHECK(contains(page, ">steps 81 to 140 in "));
  CHECK(count_of(page, "<div class=\"tile\">") == 4);
  CHECK(contains(page, "<b>0.5 → 0.5</b><span class=\"soft\">loss, first and last 10 steps</span>"));
  CHECK(contains(page, "<b>0.7 → 0.2</b><span class=\"soft\">validation loss, best 0.2, step 80 to 140</span>"));
  CHECK(contains(page, "<b>0.75 → 0.75</b><span class=\"soft\">validation accuracy, best 0.75, step 80 to 140</span>"));
  CHECK(contains(page, "id=\"lengths_part\" hidden"));
  CHECK(contains(page, "id=\"samples_part\" hidden"));
  CHECK(in_head(page, "Tokens per second") == "78000");  // smoothed by 0.8
  CHECK(in_head(page, "Learning rate") == "0.001");
  for (const char* title : {"Loss", "Accuracy"}) {  // a line of each, but only training's has a faint one behind it
    const size_t from = page.find(fmt::format("aria-label=\"{}\"", title));
    const std::string chart = page.substr(from, page.find("</svg>", from) - from);
    CHECK(count_of(chart, "<path") == 3);
    CHECK(count_of(chart, "class=\"raw\"") == 1);
  }
}

TEST_CASE("on a narrow screen the table of times is whole") {
  if (!has_browser()) return;
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  for (int64_t step = 1; step <= 20; ++step) {
    log.add(
        "timing/train",
        {{"total_step_time", 2}, {"policy_and_reference_logprobs", 0.00123}, {"prepare_for_generation/total", 0.0123}});
    if (step > 1) log.add("timing/train", {{"prepare_for_generation/transfer_and_update_weights", 0.0123}});
    log.end_step(step);
  }
  report::write_report(log.directory());
  // A window has no less than some 500 pixels, a frame does.
  std::ofstream(log.directory() / "report.html", std::ios::app)
      << "<script>const box = document.querySelector('#time .scroll');"
         "parent.postMessage(innerWidth + ' wide, hidden: ' + (box.scrollWidth - box.clientWidth), '*')</script>";
  dir.write("frame.html",
            "<p></p><script>addEventListener('message', e => document.querySelector('p').textContent = e.data)</script>"
            "<iframe src=\"exp_001/report.html\" style=\"border:0;width:400px;height:3000px\"></iframe>");
  const std::string page = rendered(dir / "frame.html", dir.path());
  CHECK_MESSAGE(contains(page, "<p>400 wide, hidden: 0</p>"), page.substr(0, 2000));
}
