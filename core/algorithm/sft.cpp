// L = -sum over the assistant's tokens of log pi(token | what came before) / their number.
#include "core/algorithm/supervised.hpp"

namespace hexad::algorithm {

Ending sft_train(Supervised& run) {
  Objective objective;
  objective.summarize = [](const std::vector<Metrics>& batches) {
    double sum = 0;
    for (const Metrics& batch : batches) sum += batch.at("loss");
    return Validation{.metrics = {{"val_loss", sum / static_cast<double>(batches.size())}}};
  };
  return supervised_train(run, objective);
}

}  // namespace hexad::algorithm
