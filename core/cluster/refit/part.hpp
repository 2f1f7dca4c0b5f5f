// What one rank does in a refit between ranks that train and ranks that generate.
#pragma once
#include "core/cluster/refit/plan.hpp"

namespace hexad::cluster {

struct RefitPart {
  struct Send {
    std::string weight;
    int to = 0;
    Box box;  // in the whole weight
  };
  struct Receive {
    size_t slice = 0;  // of `needed`
    int from = 0;
    Box box;
  };
  struct Step {
    std::vector<Send> sends;
    std::vector<Receive> receives;
  };
  std::vector<Step> steps;
  Layout needed;
};

}  // namespace hexad::cluster
