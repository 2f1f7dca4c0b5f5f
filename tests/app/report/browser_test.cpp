// report.html in a real browser: its script runs, what a model wrote stays text, and its numbers are the run's.
#include <cmath>

#include "app/report/report.hpp"
#include "core/telemetry/run_log.hpp"
#include "tests/app/report/browser.hpp"
#include "tests/support/logged.hpp"

using namespace hexad;
using browser::elements;
using plugin_test::contains;
using plugin_test::Json;
using telemetry::RunLog;

namespace {

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

// What a chart shows beside its title.
std::string in_head(const std::string& page, const std::string& title) {
  const std::string before = "<h3>" + title + "</h3><span class=\"soft\">";
  const size_t from = page.find(before);
  REQUIRE_MESSAGE(from != std::string::npos, title);
  return page.substr(from + before.size(), page.find('<', from + before.size()) - from - before.size());
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // a browser that must answer in time

TEST_CASE("the page draws a run in a browser, and hostile text is harmless") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "name: \"</pre><script>\"\n");
  for (int64_t step = 1; step <= 60; ++step) {
    log.add("train", {{"reward", std::sin(static_cast<double>(step))}, {"loss", step == 5 ? NAN : 1.0}});
    log.add("timing/train", {{"total_step_time", 2}, {"generation", 1}});
    test_support::write_samples(log, step,
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
    const std::string page = elements(dir, dir / "page.html");
    CHECK(contains(page, "exp_001"));
    CHECK_FALSE(contains(page, "<title>taken"));
    CHECK_FALSE(contains(page, "<img"));
    CHECK(count_of(page, "aria-label=\"Reward\"") == 1);
    CHECK(count_of(page, "aria-label=\"step time by part\"") == runs);  // side by side
    CHECK(count_of(page, "class=\"raw\"") >= runs);                     // a faint line behind each smoothed one
    CHECK(
        contains(page, " 520\" role=\"img\" aria-label=\"histograms of response lengths\""));  // rows that do not touch
    CHECK_FALSE(contains(page, "_part\" hidden"));
    CHECK(contains(page, "style=\"background: rgba(var(--hot)"));  // one nat of mismatch
    CHECK(contains(page, "token given"));                          // not written by the model
    CHECK(contains(page, "\u27e8202e\u27e9"));                     // would turn the line around
  }
}

TEST_CASE("prev_logprobs that were not computed, lengths of the first responses alone: the page says so") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  const Json large = {{"content", std::string(1 << 20, 'x')}, {"token_loss_mask", {0.0, 1.0}}};  // an older log's
  test_support::write_samples(log, 1, std::vector<Json>(17, large));
  log.end_step(1);
  log.add("train", {{"reward", 1}});
  test_support::write_samples(log, 2,
                              {Json{{"content", "ab"},
                                    {"response", "b"},
                                    {"rewards", 1.0},
                                    {"token_ids", {1, 2}},
                                    {"tokens", {"a", "b"}},
                                    {"token_loss_mask", {0.0, 1.0}},
                                    {"generation_logprobs", {0.0, -11.0}},
                                    {"prev_logprobs", nullptr}}});
  log.end_step(2);
  report::write_report(log.directory());
  const std::string page = elements(dir, log.directory() / "report.html");
  CHECK(contains(page, "share of responses at the beginning of a step's log, which is long"));
  CHECK(contains(page, "worst mismatch <b>not computed</b>"));
  CHECK(contains(page, "not computed: nothing in this run needs prev_logprobs"));
  CHECK_FALSE(contains(page, "style=\"background: rgba(var(--hot)"));
}

TEST_CASE("a sample has what was expected, its verdict and why") {
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
  test_support::write_samples(log, 1,
                              {sample({{"components", {{"tests", 1.0}, {"style", 0.0}}}, {"advantages", {1.5, 1.5}}}),
                               sample({{"truncated", true}, {"sample_loss_mask", 0.0}})});
  test_support::write_samples(log, 2,
                              {sample(Json::object()), sample({{"rewards", nullptr}, {"sample_loss_mask", 0.0}})});
  log.end_step(1);
  log.end_step(2);
  for (const int step : {1, 2}) {  // two are open
    report::write_report(log.directory());
    const std::string page = elements(dir, log.directory() / "report.html");
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
  const std::string page = elements(dir, log.directory() / "report.html");
  CHECK(contains(page, ">steps 81 to 140 in "));
  CHECK(count_of(page, "<div class=\"tile\">") == 5);
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
  const Json read = {{"hidden", "(box => box.scrollWidth - box.clientWidth)(document.querySelector('#time .scroll'))"}};
  const Json visit = browser::visit(browser::url_of(log.directory() / "report.html"), read, {{"width", 390}});
  CHECK(browser::saw(dir, Json::array({visit})).at(0).at("read").at("hidden") == 0);
}

TEST_CASE("beside a chart is the way to what its metric says, above them to questions") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log.add("train", {{"reward", 1}, {"of_a_plugin", 2}});
  log.end_step(1);
  report::write_report(log.directory());
  const std::string url = browser::url_of(log.directory() / "report.html");
  const Json open = {{"open", "document.getElementById('reading').open"}};
  const std::string marked = "document.querySelector('#reading .marked')";
  const Json visits = {browser::visit(url, open),
                       browser::visit(url + "#reading", open),
                       {{"page", url},
                        {"stages",
                         {{{"until", "document.querySelector('[data-metric=\"train/reward\"] button').click() ?? true"},
                           {"read", {{"marked", marked + ".textContent"}}}},
                          {{"until", "document.querySelector('#questions button').click() ?? true"},
                           {"read", {{"marked", marked + ".textContent"}}}}}}}};
  const std::vector<Json> seen = browser::saw(dir, visits);
  CHECK(seen.at(0).at("read").at("open") == false);
  CHECK(seen.at(1).at("read").at("open") == true);
  CHECK(contains(seen.at(2).at("read").at("marked"), "mean reward of the step's samples"));
  CHECK(seen.at(3).at("read").at("marked") == "Why is my loss 0?");
}

TEST_SUITE_END();
