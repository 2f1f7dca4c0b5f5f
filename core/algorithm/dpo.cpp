// L = -log sigmoid(r(chosen) - r(rejected)) over pairs of answers to one prompt, with the implicit reward
// r(y) = beta * (log pi(y) - log pi_ref(y)); pi_ref is the policy that the run began with.
#include "core/algorithm/supervised.hpp"

namespace hexad::algorithm {

Ending dpo_train(Supervised& run) {
  Objective objective;
  objective.prepare = [&](data::Batch& batch) {
    batch.set("reference_policy_logprobs", run.policy.logprobs(batch, cluster::Weights::reference), data::Axis::token);
  };
  objective.summarize = over_pairs;
  return supervised_train(run, objective);
}

}  // namespace hexad::algorithm
