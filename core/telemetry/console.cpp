#include "core/telemetry/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/text/text_width.hpp"

namespace hexad::telemetry {
namespace {

constexpr int kBarCells = 20;

size_t terminal_width(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// One that obeys the bar's control characters.
bool is_terminal(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  return ::isatty(::fileno(out)) != 0 && !(kind && std::string_view(kind) == "dumb");
}

// Its reader may have gone, and its disk be full: a run does not end for that.
void put(std::FILE* out, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
  std::clearerr(out);
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

Console::Console(std::FILE* out) : out_(out), terminal_(is_terminal(out)) {}
Console::~Console() { clear_bar(); }

void Console::line(const std::string& text) {
  clear_bar();
  const std::string safe = indented(without_secrets(text));
  put(out_, (terminal_ ? text::wrapped(safe, terminal_width(out_)) : safe) + "\n");
}

void Console::progress(const std::string& what, int64_t done, int64_t total, const std::string& detail) {
  if (!terminal_ || total <= 0) return;
  const int filled = static_cast<int>(kBarCells * done / total);
  std::string text = fmt::format("{} [{}{}] {}/{}  {}", what, std::string(filled, '#'),
                                 std::string(kBarCells - filled, '.'), done, total, detail);
  const size_t width = terminal_width(out_) - 1;  // the last column would wrap
  put(out_, "\r\033[K" + text::cut_to_width(one_line(text), width));
  bar_shown_ = true;
}

void Console::step(int64_t step, int64_t steps, const Metrics& train, const Metrics& timing) {
  const auto found = timing.find("total_step_time");
  const double total = found == timing.end() ? 0 : found->second;
  std::string text = fmt::format("step {}/{}", step, steps);
  text += field(train, "reward", "reward", "{:.3f}");
  text += field(train, "loss", "loss", "{:.4f}");
  text += field(train, "grad_norm", "grad", "{:.3f}");
  text += field(train, "token_mult_prob_error", "mismatch", "{:.4f}");
  text += field(train, "mean_gen_tokens_per_sample", "length", "{:.1f}");
  std::string time = field(timing, "total_step_time", "time", "{:.2f} s");
  if (total > 0) time += fmt::format("  ({})", breakdown(timing, total));
  if (!terminal_) return line(text + time);
  line(text);
  if (!time.empty()) line(text::cut_to_width(time, terminal_width(out_)));
}

void Console::clear_bar() {
  if (!bar_shown_) return;
  put(out_, "\r\033[K");
  bar_shown_ = false;
}

}  // namespace hexad::telemetry
