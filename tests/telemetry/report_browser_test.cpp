// report.html in a real browser, where this machine has Chromium: its script runs, and what a model wrote stays text.
#include <array>
#include <cmath>
#include <cstdio>

#include "core/telemetry/report.hpp"
#include "core/telemetry/run_log.hpp"
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

}  // namespace

TEST_CASE("the page draws a run in a browser, and hostile text is harmless") {
  if (std::system("command -v chromium > /dev/null 2>&1") != 0) {
    MESSAGE("left out: this machine has no chromium");
    return;
  }
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
  const telemetry::RunRecord run = telemetry::read_run(log.directory());
  for (size_t runs : {1, 2}) {
    telemetry::write_page(std::vector(runs, run), dir / "page.html");
    const std::string page = rendered(dir / "page.html", dir.path());
    CHECK_MESSAGE(!contains(page, ":CONSOLE"), page.substr(0, 2000));
    CHECK(contains(page, "exp_001"));
    CHECK_FALSE(contains(page, "<title>taken"));
    CHECK_FALSE(contains(page, "<img"));
    CHECK(count_of(page, "aria-label=\"Reward\"") == 1);
    CHECK(count_of(page, "class=\"raw\"") >= runs);  // a faint line behind each smoothed one
    CHECK(contains(page, "aria-label=\"step time by part\""));
    CHECK(contains(page, "aria-label=\"histograms of response lengths\""));
    CHECK(contains(page, "style=\"background: rgba(var(--hot)"));  // one nat of mismatch
    CHECK(contains(page, "token given"));                          // not written by the model
    CHECK(contains(page, "\u27e8202e\u27e9"));                     // would turn the line around
  }
}
