// The numbers that a person reads off report.html are those of metrics.jsonl, whatever the screen.
#include <cmath>

#include "app/report/report.hpp"
#include "tests/app/report/browser.hpp"

using namespace hexad;
using plugin_test::Json;

namespace {

// Metrics of a real run's first step, and as many steps as wanted, with noise of their own.
std::vector<Json> steps_like_a_run(int64_t steps) {
  const auto log = toy::source_dir() / "tests/app/older_run/logs/exp_001/metrics.jsonl";
  const Json first = toy::lines(log).at(0);
  std::vector<Json> lines;
  for (int64_t step = 1; step <= steps; ++step) {
    Json line = first;
    const auto wave = [&](double period) { return std::sin(static_cast<double>(step) / period); };
    line["step"] = step;
    line["time"] = 1.7e9 + 2.5 * static_cast<double>(step);
    line["train/reward"] = 0.5 + 0.4 * wave(97);
    line["train/token_mult_prob_error"] = step == steps / 3 ? 3.25 : 1 + 0.01 * wave(7);
    line["timing/train/total_step_time"] = 2.5 + wave(13);
    line["timing/train/generation"] = 1.25 + 0.5 * wave(13);
    if (step % 5 == 0) line["validation/accuracy"] = 0.4 + 0.3 * wave(200);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string text_of(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) text += line.dump() + "\n";
  return text;
}

double mean(const std::vector<Json>& lines, const char* key, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; ++i) sum += lines[i].at(key).get<double>();
  return sum / static_cast<double>(to - from);
}

// "0.1 → 0.9" as two numbers, of the tile with that label.
std::vector<double> numbers_of(const Json& tiles, const std::string& label) {
  for (const auto& [name, text] : tiles.items()) {
    if (!name.starts_with(label)) continue;
    std::vector<double> numbers;
    std::istringstream words(text.get<std::string>());
    for (std::string word; words >> word;) {
      if (std::isdigit(static_cast<unsigned char>(word[0]))) numbers.push_back(std::stod(word));
    }
    return numbers;
  }
  FAIL("no tile " << label);
  return {};
}

void check_near(double got, double wanted) { CHECK(std::abs(got - wanted) <= 0.006 * std::abs(wanted)); }

constexpr const char* kTiles =
    "Object.fromEntries([...document.querySelectorAll('.tile')].map(t => [t.querySelector('span').textContent, "
    "t.querySelector('b').textContent]))";
// Least contrast (WCAG) of a text's colour with its background; 4.5 is what a reader with weak eyes needs.
constexpr const char* kContrast =
    "(() => { const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => v / 255)"
    ".map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); "
    "return 0.2126 * r + 0.7152 * g + 0.0722 * b; };"
    "const pair = (text, behind) => { const [a, b] = [getComputedStyle(text).color, "
    "getComputedStyle(behind).backgroundColor].map(light).sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };"
    "const card = document.querySelector('.card'); return Math.min(pair(document.body, document.body), "
    "pair(document.querySelector('.soft'), document.body), pair(card.querySelector('.soft'), card)); })()";

struct Screen {
  int64_t steps;
  int width;
  bool dark;
};

void check_numbers(const Json& read, const std::vector<Json>& lines) {
  const size_t n = lines.size();
  const Json& tiles = read.at("tiles");
  const auto reward = numbers_of(tiles, "reward");
  check_near(reward.at(0), mean(lines, "train/reward", 0, 10));
  check_near(reward.at(1), mean(lines, "train/reward", n - 10, n));
  const auto accuracy = numbers_of(tiles, "validation accuracy");
  check_near(accuracy.at(0), lines[4].at("validation/accuracy"));
  check_near(accuracy.at(1), lines[n - 1].at("validation/accuracy"));
  check_near(numbers_of(tiles, "largest token_mult_prob_error").at(0), 3.25);
  check_near(numbers_of(tiles, "a step, mean").at(0), mean(lines, "timing/train/total_step_time", 0, n));
  const double share = mean(lines, "timing/train/generation", 0, n) / mean(lines, "timing/train/total_step_time", 0, n);
  check_near(std::stod(read.at("share").get<std::string>()), std::round(100 * share));
  CHECK(read.at("longest_line").get<size_t>() >= std::min<size_t>(n, 500));  // as many points as the screen can show
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // a browser that must answer in time

TEST_CASE("numbers of 10 and of 10,000 steps; light and dark; narrow and wide") {
  const toy::TempDir dir;
  std::vector<Screen> screens;
  Json visits = Json::array();
  std::map<int64_t, std::vector<Json>> runs;
  for (const int64_t steps : {10, 10'000}) {
    runs[steps] = steps_like_a_run(steps);
    const auto folder = dir / fmt::format("steps_{}", steps);
    dir.write(folder / "metrics.jsonl", text_of(runs[steps]));
    report::write_report(folder);
    CHECK(std::filesystem::file_size(folder / "report.html") < 4'000'000);
    for (const int width : {390, 1600}) {
      for (const bool dark : {false, true}) {
        screens.push_back({steps, width, dark});
        visits.push_back(browser::visit(
            browser::url_of(folder / "report.html"),
            {{"tiles", kTiles},
             {"overflow",
              "(document.getElementById('reading').open = true, document.documentElement.scrollWidth - "
              "innerWidth)"},
             {"background", "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"},
             {"contrast", kContrast},
             {"share",
              "[...document.querySelectorAll('#time td')].find(t => t.textContent === 'generation')"
              ".nextSibling.textContent"},
             {"longest_line",
              "Math.max(...[...document.querySelectorAll('#charts path')]"
              ".map(p => p.getAttribute('d').split('L').length))"}},
            {{"width", width}, {"dark", dark}}));
      }
    }
  }
  const std::vector<Json> seen = browser::saw(dir, visits);
  REQUIRE(seen.size() == screens.size());
  for (size_t i = 0; i < screens.size(); ++i) {
    const Screen& screen = screens[i];
    const std::string which = fmt::format("{} steps, {} px, dark {}", screen.steps, screen.width, screen.dark);
    CAPTURE(which);
    const Json& read = seen[i].at("read");
    check_numbers(read, runs.at(screen.steps));
    CHECK(read.at("overflow").get<int>() <= 0);  // a scroll bar takes some of the width
    CHECK((read.at("background").get<int>() < 60) == screen.dark);
    CHECK(read.at("contrast").get<double>() >= 4.5);
    CHECK(seen[i].at("ms").get<int>() < 60'000);
  }
}

TEST_SUITE_END();
