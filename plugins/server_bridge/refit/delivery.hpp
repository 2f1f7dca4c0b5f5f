// One update of weights through a channel, from its start on every server to its end.
#pragma once
#include <vector>

#include "plugins/server_bridge/refit/channel.hpp"

namespace hexad::bridge {

class Delivery {
 public:
  // Servers that do not begin fail. What it is given outlives it.
  Delivery(const sdk::Call& call, int64_t version, const Dialect& dialect, Channel& channel, Control& control,
           std::vector<Target> targets, const Deadlines& deadlines);
  // Servers whose update has not ended hold a mixture: they fail.
  ~Delivery();
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // A bucket of whole weights.
  void add(const sdk::Call& call, const hexad_weight_list& bucket);
  // The servers that hold the weights now. Throws if nothing came.
  std::vector<Target> finish();

 private:
  void start();

  const Dialect& dialect_;
  Channel& channel_;
  Control& control_;
  std::vector<Target> targets_;  // that have taken all so far
  std::vector<Target> open_;     // where the update may have begun, and has not ended
  const Deadlines& deadlines_;
  int64_t weights_ = 0;
};

}  // namespace hexad::bridge
