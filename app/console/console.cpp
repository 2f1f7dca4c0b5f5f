#include "app/console/console.hpp"

#include <chrono>
#include <condition_variable>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "app/console/log.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/text/text_width.hpp"

namespace hexad::console {
namespace {

constexpr double kDrawEvery = 0.05;  // seconds; phases may last less

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Options with_clock(Options options) {
  if (!options.clock) options.clock = steady_seconds;
  return options;
}

// "note:" and "notice:" stand out.
std::vector<Mark> marks_of(const std::string& text) {
  for (const char* word : {"note:", "notice:"})
    if (text.starts_with(word) || text.find(std::string(" ") + word) != text.npos) return {{word, Style::yellow}};
  return {};
}

}  // namespace

RunConsole::RunConsole(Options options) : options_(with_clock(std::move(options))), output_(options_.out) {
  began_ = options_.clock();
  if (options_.waits) waiting_.emplace();
  show_log_above(this);
  if (!output_.is_terminal() || options_.redraws.count() == 0) return;
  try {
    redraw_ = std::jthread([this](const std::stop_token& over) { redraw(over); });
  } catch (const std::system_error&) {  // no thread is left: the bar moves when something happens
  }
}

void RunConsole::redraw(const std::stop_token& over) {
  std::mutex sleep;
  std::condition_variable_any changed;
  std::unique_lock lock(sleep);
  while (!changed.wait_for(lock, over, options_.redraws, [&] { return over.stop_requested(); })) {
    const std::lock_guard guard(mutex_);
    if (bar_width_ > 0) draw();
  }
}

RunConsole::~RunConsole() {
  redraw_ = {};
  show_log_above(nullptr);
  const std::lock_guard guard(mutex_);
  tell_waiting();
  output_.put(cleared_bar());
}

void RunConsole::tell_waiting() {
  if (!waiting_) return;
  const std::vector<std::string> lines = *std::exchange(waiting_, std::nullopt);
  for (const std::string& text : lines) put_line(text, marks_of(text));
}

void RunConsole::line(const std::string& text) {
  const std::lock_guard guard(mutex_);
  if (waiting_) return waiting_->push_back(text);
  put_line(text, marks_of(text));
}

void RunConsole::started(const algorithm::Started& started) {
  const std::lock_guard guard(mutex_);
  const std::filesystem::path own = options_.program.parent_path().parent_path() / "lib/hexad/plugins";
  for (const std::string& text : start_lines(started, own)) put_line(text, {{text.substr(0, kLabelWidth), Style::dim}});
  tell_waiting();
}

void RunConsole::begin(int64_t step, int64_t last_step) {
  const std::lock_guard guard(mutex_);
  step_ = step, last_step_ = last_step;
  estimate_.begin(step, last_step, options_.clock());
}

void RunConsole::phase(const std::string& name) {
  const std::lock_guard guard(mutex_);
  phase_.begin(name, options_.clock());
  if (options_.clock() - drawn_ >= kDrawEvery) draw();
}

void RunConsole::progress(int rank, const cluster::protocol::Progress& progress) {
  const std::lock_guard guard(mutex_);
  phase_.add(rank, progress, options_.clock());
  draw();
}

void RunConsole::validated(int64_t after, const std::string& prefix, const Metrics& metrics) {
  const std::lock_guard guard(mutex_);
  accuracy_.add(after, metrics, "accuracy");
  loss_.add(after, metrics, metrics.contains("val_loss") ? "val_loss" : "loss");
  const Line line = validations_.line(after, prefix, metrics);
  if (!line.text.empty()) put_line(line.text, line.marks);
}

void RunConsole::step(int64_t step, const Metrics& train, const Metrics& timing, const Metrics& rates) {
  const std::lock_guard guard(mutex_);
  const double now = options_.clock();
  estimate_.end(now);
  phase_.end(now);
  ++steps_done_;
  newest_done_ = step;
  reward_.add(step, train, "reward");
  const StepText text = step_text(step, last_step_, train, timing, rates, estimate_.left_s(now));
  const std::string time = text.time + text.parts;
  const Mark head{text.head, Style::bold};
  const size_t width = output_.width();
  const bool fits = text::text_width(text.metrics + time) <= width;
  if (!output_.is_terminal() || fits) return put_line(text.metrics + time, {head, {time, Style::dim}});
  put_line(text.metrics, {head});
  constexpr size_t kWorthwhile = 20;  // columns of the parts
  const bool has_room = text::text_width(text.time) + kWorthwhile <= width;
  const std::string cut = text::cut_to_width(has_room ? time : text.time, width);
  if (!cut.empty()) put_line(cut, {{cut, Style::dim}});
}

void RunConsole::above(const std::string& text, const std::vector<Mark>& marks) {
  const std::lock_guard guard(mutex_);
  put_safe(text, marks);
}

std::string RunConsole::change() const {
  const std::lock_guard guard(mutex_);
  if (steps_done_ == 0) return "";
  std::string text;
  if (accuracy_.first)
    text = change_text("accuracy", accuracy_, newest_done_) + "  ";
  else if (loss_.first)
    text = change_text("validation loss", loss_, newest_done_) + "  ";
  if (reward_.first && steps_done_ > 1)
    text += fmt::format("reward {:.3g} to {:.3g}  ", *reward_.first, *reward_.newest);
  return text + fmt::format("{} step{} in {}", steps_done_, steps_done_ == 1 ? "" : "s",
                            duration_text(options_.clock() - began_));
}

void RunConsole::put_line(const std::string& text, const std::vector<Mark>& marks) {
  put_safe(indented(without_secrets(text)), marks);
}

void RunConsole::put_safe(const std::string& text, const std::vector<Mark>& marks) {
  const std::string shown = output_.is_terminal() ? text::wrapped(text, output_.width()) : text;
  output_.put(cleared_bar() + output_.marked(shown, marks) + "\n");
}

void RunConsole::draw() {
  if (!output_.is_terminal() || !phase_.is_known()) return;
  const double now = options_.clock();
  BarText text{.head = phase_.word(),
               .share = phase_.share(now),
               .counts = phase_.counts(now),
               .rate = phase_.rate(now),
               .left = {}};
  if (step_ > 0) text.head = fmt::format("step {}/{}  {}", step_, last_step_, text.head);
  if (const auto left = estimate_.left_s(now)) text.left = duration_text(*left) + " left";
  const size_t width = output_.width();
  const std::string line = bar_line(text, width - 1);  // the last column would wrap
  const std::vector<Mark> marks = {{text.head, Style::bold}};
  output_.put(cleared_bar() + output_.marked(line, marks));
  bar_width_ = text::text_width(line);
  drawn_ = now;
}

// A terminal that has become narrower since has broken the bar into several lines.
std::string RunConsole::cleared_bar() {
  if (bar_width_ == 0) return "";
  const size_t lines = (std::exchange(bar_width_, 0) - 1) / std::max<size_t>(1, output_.width());
  return "\r" + (lines > 0 ? fmt::format("\033[{}A", lines) : "") + "\033[J";
}

}  // namespace hexad::console
