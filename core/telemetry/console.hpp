// What a person sees while a run goes on: a progress bar on a terminal, plain lines in a pipe, one line a step.
#pragma once
#include <cstdio>
#include <map>
#include <string>

#include "core/telemetry/run_log.hpp"

namespace hexad::telemetry {

// Writes to `out` (standard error by default). On a terminal the bar is redrawn in place and cut to its width, and
// longer lines are broken between fields; elsewhere (a file, a pipe, TERM=dumb) there are finished lines alone, one a
// step. What a terminal would obey in a text is shown by number, lines of it after its first are indented, and secrets
// are left out (lib/base/said). What cannot be written is left out. One thread.
class Console {
 public:
  explicit Console(std::FILE* out = stderr);
  ~Console();  // leaves the cursor on a line of its own

  // A line of text above the bar.
  void line(const std::string& text);
  // The bar: "generation  [#####.....] 12/32  340 tok/s".
  void progress(const std::string& what, int64_t done, int64_t total, const std::string& detail = "");
  // "step 12/200  reward 0.412  loss 0.013  ...  time 3.2 s  (generation 55%, policy_training 30%)": the step's metrics
  // (grad: grad_norm, mismatch: token_mult_prob_error) and the parts of total_step_time, largest first. On a terminal
  // the time has a line of its own.
  void step(int64_t step, int64_t steps, const Metrics& train, const Metrics& timing);

 private:
  void clear_bar();

  std::FILE* out_;
  bool terminal_;
  bool bar_shown_ = false;
};

}  // namespace hexad::telemetry
