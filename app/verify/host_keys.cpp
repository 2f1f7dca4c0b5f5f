#include "app/verify/host_keys.hpp"

namespace hexad::plugin {

std::span<const HostKey> host_keys() {
  // Those that cluster/process/start_workers.cpp and cluster/worker/start.cpp write.
  static const std::vector<HostKey> keys = {
      {"model_name", "text", {Kind::backend, Kind::generator}, "directory of the model, found on this machine"},
      {"reward_model_cfg.enabled",
       "bool",
       {Kind::backend},
       "the model has the head of a reward model; true where the algorithm is `rm`, else as it is written"},
      {"precision", "text", {Kind::generator}, "`policy.precision`"},
      {"max_total_sequence_length", "int", {Kind::generator}, "`policy.max_total_sequence_length`"},
      {"batch_invariant", "bool", {Kind::generator}, "`policy.batch_invariant`"},
      {"weights_follow",
       "bool",
       {Kind::generator},
       "an update brings weights before the first request: those of the directory need not be read"},
      {"return_routed_experts", "bool", {Kind::generator}, "samples come with the column `routed_experts`"},
      {"replica_index", "int", {Kind::generator}, "which of the generator's worlds this rank belongs to, from 0"},
      {"replica_count", "int", {Kind::generator}, "how many there are"},
  };
  return keys;
}

}  // namespace hexad::plugin
