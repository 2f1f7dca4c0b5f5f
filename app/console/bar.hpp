// The bar at a terminal's last line: what a run does now, how far it has come, how fast, and how long it has to go.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/cluster/protocol/protocol.hpp"

namespace hexad::console {

// A phase of a step, and what the ranks that take part tell of it. Times are seconds of one clock.
class Phase {
 public:
  // `name`: of the step's timings; what follows a slash belongs to the phase before it.
  void begin(const std::string& name, double now);
  void end(double now);
  // A rank that begins anew (the next turn, the next global batch) has begun anew for all.
  void add(int rank, const cluster::protocol::Progress& progress, double now);

  bool is_known() const { return !name_.empty(); }
  // "training" for policy_training: the word for people.
  std::string word() const;
  // The share that is done: by what ranks tell, else by the time that this phase took before; nothing: nobody knows.
  std::optional<double> share(double now) const;
  // "12/32"; "~4 of 9 s" where ranks tell nothing; "" where nobody knows.
  std::string counts(double now) const;
  // "1,340 tok/s", or "".
  std::string rate(double now) const;

 private:
  struct Sum {
    int64_t done = 0, total = 0, tokens = 0;
  };
  Sum sum() const;
  std::optional<double> usual_s() const;

  std::string name_;
  double began_ = 0;
  std::map<int, cluster::protocol::Progress> ranks_;
  std::map<std::string, double> took_s_;  // the last time
};

struct BarText {
  std::string head;  // "step 13/200  training"
  std::optional<double> share;
  std::string counts, rate, left;
};

// One line of at most `width` columns: "step 13/200  training [#####.....] 12/32  1,340 tok/s  12 min left". What does
// not fit beside a bar of eight cells is left out: the rate first, the counts next, what is left last.
std::string bar_line(const BarText& text, size_t width);

}  // namespace hexad::console
