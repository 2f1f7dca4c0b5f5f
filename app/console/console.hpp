// What a person sees while a run goes on: on a terminal a bar at its last line, elsewhere lines alone, one a step.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/console/bar.hpp"
#include "app/console/estimate.hpp"
#include "app/console/lines.hpp"
#include "app/console/output.hpp"
#include "core/algorithm/run/console.hpp"

namespace hexad::console {

struct Options {
  std::FILE* out = stderr;
  std::filesystem::path program = {};       // this executable: its own plugins need no file names
  std::function<double()> clock = {};       // seconds; empty: a steady clock
  std::chrono::milliseconds redraws{1000};  // how often the bar is drawn while nothing happens; 0: never
  bool waits = true;                        // for started(), before lines are told
};

// On a terminal the bar is redrawn in place and cut to the terminal's width, which is asked for at every drawing;
// longer lines are broken between fields, and paths stay whole. Elsewhere (a file, a pipe, TERM=dumb) there are
// finished lines alone. Lines that come before the run has started wait for it, so that the first one says what it
// works on, and are told at the end where it does not come. What a terminal would obey in a text is shown by number,
// lines of it after its first are indented, and secrets are left out (lib/base/said). above() is any thread's.
class RunConsole : public algorithm::Console {
 public:
  explicit RunConsole(Options options = {});
  ~RunConsole() override;  // leaves the cursor on a line of its own
  RunConsole(const RunConsole&) = delete;
  RunConsole& operator=(const RunConsole&) = delete;

  void line(const std::string& text) override;
  void started(const algorithm::Started& started) override;
  void begin(int64_t step, int64_t last_step) override;
  void phase(const std::string& name) override;
  void progress(int rank, const cluster::protocol::Progress& progress) override;
  void validated(int64_t after, const std::string& prefix, const Metrics& metrics) override;
  void step(int64_t step, const Metrics& train, const Metrics& timing, const Metrics& rates) override;

  // A line of the log, which is safe to show.
  void above(const std::string& text, const std::vector<Mark>& marks);

  // "accuracy 0.115 before, 0.785 after  reward 0.13 to 0.98  20 steps in 13 min": what has changed, as far as it was
  // measured (change_text); "" where no step was trained.
  std::string change() const;

 private:
  void put_line(const std::string& text, const std::vector<Mark>& marks = {});
  void put_safe(const std::string& text, const std::vector<Mark>& marks);
  void tell_waiting();
  void redraw(const std::stop_token& over);
  void draw();
  std::string cleared_bar();

  mutable std::mutex mutex_;
  const Options options_;
  const Output output_;
  std::optional<std::vector<std::string>> waiting_;  // nothing: no line waits any more
  Estimate estimate_;
  Phase phase_;
  Validations validations_;
  int64_t step_ = 0, last_step_ = 0, steps_done_ = 0, newest_done_ = 0;
  double began_ = 0, drawn_ = 0;
  size_t bar_width_ = 0;  // columns that are drawn; 0: there is no bar
  Span accuracy_, loss_, reward_;
  std::jthread redraw_;  // ends before all it draws
};

}  // namespace hexad::console
