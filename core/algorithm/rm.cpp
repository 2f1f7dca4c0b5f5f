// L = -log sigmoid(s(chosen) - s(rejected)) over pairs of answers to one prompt; s is the score that the model's reward
// head gives a sequence.
#include "core/algorithm/supervised.hpp"

namespace hexad::algorithm {

Ending rm_train(Supervised& run) {
  Objective objective;
  objective.summarize = over_pairs;
  return supervised_train(run, objective);
}

}  // namespace hexad::algorithm
