// What the manifests of a run's plugins say of them (sdk/CONFIG.md, "Facts"), for this configuration.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hexad::config {

// A learning-rate schedule that a backend's own keys describe: warm-up, decay in a style, weight decay that grows. Steps are
// those of the run. Formulas: core/algorithm/lr_schedule_annealed.hpp.
struct ScheduleFact {
  double lr_warmup_init = 0, lr = 0, min_lr = 0;
  int64_t lr_warmup_iters = 0;
  std::optional<int64_t> lr_decay_iters;  // absent: the run's steps
  std::string lr_decay_style = "constant";
  double start_weight_decay = 0, end_weight_decay = 0;
  std::string weight_decay_incr_style = "constant";
  std::optional<int64_t> lr_wsd_decay_iters;
  std::optional<std::string> lr_wsd_decay_style;
};

struct RunFacts {
  std::string backend = "", generator = "", loss = "";       // the plugins' own names; empty: none is chosen
  std::string generator_to_load = "", backend_to_load = "";  // their names, or the paths that the configuration gives
  std::optional<int64_t> copy_ranks;                         // ranks that hold one copy of the model together
  int64_t replica_ranks = 1;                                 // ranks of one replica of the generator
  bool packs = true;                                         // the backend runs packed sequences
  bool batch_invariant = false;                              // it has policy.batch_invariant
  std::vector<std::string> batch_invariant_backends;         // those of all that are installed
  bool generator_batch_invariant = false;                    // and so has the generator
  bool needs_server = false;                                 // the generator starts or attaches to a server
  bool shares_memory = true;                                 // it lives in the memory of the ranks that train
  // Of backends with keys of their own for it; absent: policy's.
  std::optional<std::optional<double>> max_grad_norm;
  std::optional<double> learning_rate;
  std::optional<ScheduleFact> schedule;
};

}  // namespace hexad::config
