#include "core/telemetry/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace hexad::telemetry {
namespace {

constexpr int kBarCells = 20;

size_t terminal_width(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// "  reward 0.412" if the step has it.
std::string field(const Metrics& metrics, const char* key, const char* label, const char* format) {
  const auto found = metrics.find(key);
  if (found == metrics.end()) return "";
  return fmt::format("  {} {}", label, fmt::format(fmt::runtime(format), found->second));
}

// Largest first, nested names ("a/b") left to their parents.
std::string breakdown(const Metrics& timing, double total) {
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [name, seconds] : timing) {
    if (name != "total_step_time" && (name.find('/') == std::string::npos || name.ends_with("/total")))
      parts.emplace_back(seconds, name);
  }
  std::sort(parts.rbegin(), parts.rend());
  std::string text;
  for (const auto& [seconds, name] : parts) {
    if (seconds < 0.02 * total) break;
    text +=
        fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", name.substr(0, name.find('/')), 100 * seconds / total);
  }
  return text;
}

}  // namespace

Console::Console(std::FILE* out) : out_(out), terminal_(::isatty(::fileno(out)) != 0) {}
Console::~Console() { clear_bar(); }

void Console::line(const std::string& text) {
  clear_bar();
  fmt::print(out_, "{}\n", text);
  std::fflush(out_);
}

void Console::progress(const std::string& what, int64_t done, int64_t total, const std::string& detail) {
  if (!terminal_ || total <= 0) return;
  const int filled = static_cast<int>(kBarCells * done / total);
  std::string text = fmt::format("{} [{}{}] {}/{}  {}", what, std::string(filled, '#'),
                                 std::string(kBarCells - filled, '.'), done, total, detail);
  text.resize(std::min(text.size(), terminal_width(out_) - 1));
  fmt::print(out_, "\r\033[K{}", text);
  std::fflush(out_);
  bar_shown_ = true;
}

void Console::step(int64_t step, int64_t steps, const Metrics& train, const Metrics& timing) {
  const auto found = timing.find("total_step_time");
  const double total = found == timing.end() ? 0 : found->second;
  std::string text = fmt::format("step {}/{}", step, steps);
  text += field(train, "reward", "reward", "{:.3f}");
  text += field(train, "loss", "loss", "{:.4f}");
  text += field(train, "grad_norm", "grad_norm", "{:.3f}");
  text += field(train, "token_mult_prob_error", "mult_prob_error", "{:.4f}");
  text += field(train, "mean_gen_tokens_per_sample", "length", "{:.1f}");
  text += field(timing, "total_step_time", "time", "{:.2f} s");
  if (total > 0) text += fmt::format("  ({})", breakdown(timing, total));
  line(text);
}

void Console::clear_bar() {
  if (!bar_shown_) return;
  fmt::print(out_, "\r\033[K");
  std::fflush(out_);
  bar_shown_ = false;
}

}  // namespace hexad::telemetry
