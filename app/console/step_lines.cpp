#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/console/estimate.hpp"
#include "app/console/lines.hpp"
#include "lib/base/text.hpp"

namespace hexad::console {
namespace {

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

// A metric of validation, and which way is better.
struct Told {
  const char* name;
  const char* label;
  bool rises;
};
constexpr Told kTold[] = {{"accuracy", "accuracy", true},
                          {"pass_k", "pass_k", true},
                          {"val_loss", "val_loss", false},
                          {"loss", "loss", false}};

}  // namespace

StepText step_text(int64_t step, int64_t last_step, const Metrics& train, const Metrics& timing, const Metrics& rates,
                   std::optional<double> left_s) {
  const auto found = timing.find("total_step_time");
  const double total = found == timing.end() ? 0 : found->second;
  StepText text;
  text.head = fmt::format("step {}/{}", step, last_step);
  text.metrics = text.head + field(train, "reward", "reward", "{:.3f}") + field(train, "loss", "loss", "{:.4f}") +
                 field(train, "grad_norm", "grad", "{:.3f}") +
                 field(train, "token_mult_prob_error", "mismatch", "{:.4f}") +
                 field(train, "mean_gen_tokens_per_sample", "length", "{:.1f}");
  text.time = field(timing, "total_step_time", "time", "{:.2f} s");
  if (const auto rate = rates.find("tokens_per_sec"); rate != rates.end())
    text.time += fmt::format("  {} tok/s", grouped(std::llround(rate->second)));
  if (left_s && step < last_step) text.time += fmt::format("  {} left", duration_text(*left_s));
  if (total > 0) text.parts = fmt::format("  ({})", breakdown(timing, total));
  return text;
}

Line Validations::line(int64_t after, const std::string& prefix, const Metrics& metrics) {
  Line line;
  const auto before = before_.find(prefix);
  for (const Told& told : kTold) {
    const auto found = metrics.find(told.name);
    if (found == metrics.end()) continue;
    line.text += fmt::format("  {} {:.4g}", told.label, found->second);
    if (before == before_.end() || !before->second.contains(told.name)) continue;
    const double change = found->second - before->second.at(told.name);
    const std::string words = fmt::format("({:+.2g})", change);
    line.text += " " + words;
    if (change != 0) line.marks.push_back({words, (change > 0) == told.rises ? Style::green : Style::red});
  }
  if (const auto invalid = metrics.find("num_invalid_samples"); invalid != metrics.end())
    line.text += fmt::format("  ({} samples could not be scored and count nowhere)", invalid->second);
  if (line.text.empty()) return {};
  before_[prefix] = metrics;
  const std::string head =
      after == 0 ? prefix + " before step 1, the model as it was:" : fmt::format("{} after step {}:", prefix, after);
  line.text = head + line.text;
  line.marks.push_back({head, Style::bold});
  return line;
}

void Span::add(int64_t after, const Metrics& metrics, const char* key) {
  const auto found = metrics.find(key);
  if (found == metrics.end()) return;
  if (!first) first = found->second, first_after = after;
  newest = found->second, newest_after = after;
}

std::string change_text(const std::string& name, const Span& span, int64_t last) {
  const auto when = [](int64_t after) { return after == 0 ? "before step 1" : fmt::format("after step {}", after); };
  const std::string first = fmt::format("{} {:.4g} ", name, span.first.value());
  if (span.newest_after == span.first_after) return first + when(span.first_after);
  const std::string newest = fmt::format(", {:.4g} ", span.newest.value());
  if (span.first_after == 0 && span.newest_after == last) return first + "before" + newest + "after";
  return first + when(span.first_after) + newest + when(span.newest_after);
}

}  // namespace hexad::console
