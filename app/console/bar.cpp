#include "app/console/bar.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/said/printable.hpp"
#include "lib/base/text.hpp"
#include "lib/text/text_width.hpp"

namespace hexad::console {
namespace {

constexpr size_t kMostCells = 30, kFewestCells = 8;

// Names of timings, and the words for them; others are shown as they are.
constexpr std::pair<const char*, const char*> kWords[] = {
    {"prepare_for_generation", "refit"},
    {"weight_sync", "refit"},
    {"exposed_generation", "generation"},
    {"reward_calculation", "rewards"},
    {"policy_training", "training"},
    {"policy_and_reference_logprobs", "log-probs"},
    {"advantage_calculation", "advantages"},
    {"data_processing", "data"},
    {"checkpointing", "saving"},
    {"dynamic_sampling", "sampling"},
};

}  // namespace

void Phase::begin(const std::string& name, double now) {
  const std::string whole = name.substr(0, name.find('/'));
  if (whole == name_ || whole == "total_step_time") return;
  end(now);
  name_ = whole;
  began_ = now;
}

void Phase::end(double now) {
  if (!name_.empty()) took_s_[name_] = now - began_;
  name_.clear();
  ranks_.clear();
}

void Phase::add(int rank, const cluster::protocol::Progress& progress, double now) {
  if (name_.empty()) begin(progress.what, now);
  const auto before = ranks_.find(rank);
  if (before != ranks_.end() && progress.done < before->second.done) {
    ranks_.clear();
    began_ = now;
  }
  ranks_[rank] = progress;
}

Phase::Sum Phase::sum() const {
  Sum all;
  for (const auto& [rank, part] : ranks_) all.done += part.done, all.total += part.total, all.tokens += part.tokens;
  return all;
}

std::optional<double> Phase::usual_s() const {
  constexpr double kWorthwhile = 1;
  const auto took = took_s_.find(name_);
  return took == took_s_.end() || took->second < kWorthwhile ? std::nullopt : std::optional(took->second);
}

std::string Phase::word() const {
  for (const auto& [name, word] : kWords)
    if (name == name_) return word;
  return replaced(name_, "_", " ");
}

std::optional<double> Phase::share(double now) const {
  constexpr double kMost = 0.95;  // of a time that may be longer this once
  if (const Sum all = sum(); all.total > 0)
    return std::clamp(static_cast<double>(all.done) / static_cast<double>(all.total), 0.0, 1.0);
  if (const auto usual = usual_s()) return std::clamp((now - began_) / *usual, 0.0, kMost);
  return std::nullopt;
}

std::string Phase::counts(double now) const {
  if (const Sum all = sum(); all.total > 0) return fmt::format("{}/{}", grouped(all.done), grouped(all.total));
  const auto usual = usual_s();
  return usual ? fmt::format("~{:.0f} of {:.0f} s", now - began_, *usual) : "";
}

std::string Phase::rate(double now) const {
  constexpr double kShort = 0.2;  // seconds that say nothing yet
  const Sum all = sum();
  const double seconds = now - began_;
  if (all.tokens == 0 || seconds < kShort) return "";
  return fmt::format("{} tok/s", grouped(std::llround(static_cast<double>(all.tokens) / seconds)));
}

std::string bar_line(const BarText& text, size_t width) {
  const std::string head = one_line(text.head);
  std::vector<std::string> tail;
  for (const std::string* part : {&text.left, &text.counts, &text.rate})
    if (!part->empty()) tail.push_back(*part);
  const auto tail_width = [&] {
    size_t columns = 0;
    for (const std::string& part : tail) columns += part.size() + 2;
    return columns;
  };
  const size_t fixed = text::text_width(head) + 3;  // a blank and two brackets
  const size_t wanted = text.share ? kFewestCells : 0;
  while (!tail.empty() && fixed + wanted + tail_width() > width) tail.pop_back();
  std::string line = head;
  if (text.share && fixed + kFewestCells + tail_width() <= width) {
    const size_t cells = std::min(kMostCells, width - fixed - tail_width());
    const auto filled = static_cast<size_t>(*text.share * static_cast<double>(cells));
    line += fmt::format(" [{}{}]", std::string(filled, '#'), std::string(cells - filled, '.'));
  }
  // Shown in the order in which a reader wants them: counts, rate, what is left.
  for (const std::string* part : {&text.counts, &text.rate, &text.left})
    if (std::ranges::find(tail, *part) != tail.end()) line += (part == &text.counts && text.share ? " " : "  ") + *part;
  return text::cut_to_width(line, width);
}

}  // namespace hexad::console
