// What the manifests of a run's plugins say of them (sdk/CONFIG.md, "Facts"), for this configuration.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hexad::config {

// A learning-rate schedule that a backend's own keys describe: warm-up, decay in a style, weight decay that grows.
// Steps are those of the run. Formulas: core/algorithm/schedule/lr_schedule_annealed.hpp.
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

// Bytes that a rank holds while it trains, of the rank that holds most and in the memory where it computes.
// Activations, what is gathered for a layer and kept versions of the weights come on top.
struct BytesFact {
  int64_t parameters = 0;  // with masters, and copies in another type
  int64_t gradients = 0;
  int64_t optimizer = 0;  // its states
  int64_t sum() const { return parameters + gradients + optimizer; }
};

struct RunFacts {
  std::string backend = "", generator = "", loss = "";       // the plugins' own names; empty: none is chosen
  std::string generator_to_load = "", backend_to_load = "";  // their names, or the paths that the configuration gives
  std::optional<int64_t> copy_ranks;                         // ranks that hold one copy of the model together
  int64_t replica_ranks = 1;                                 // ranks of one replica of the generator
  // Of a backend without a declaration these are not known.
  std::optional<int64_t> sequence_multiple;           // tokens: sequences are padded to a multiple of it
  std::optional<int64_t> micro_batch_multiple;        // micro-batches of a train call are a multiple of it
  std::optional<std::vector<std::string>> outputs;    // differentiable ones of the backend; absent: not known
  std::vector<std::string> differentiates;            // those that the loss needs
  bool packs = true;                                  // the backend runs packed sequences
  bool batch_invariant = false;                       // it has policy.batch_invariant
  std::vector<std::string> batch_invariant_backends;  // those of all that are installed
  bool generator_batch_invariant = false;             // and so has the generator
  bool families = false;                              // the backend loads model folders by lib/model/family
  bool generator_families = false;                    // and so does the generator
  bool needs_server = false;                          // the generator starts or attaches to a server
  bool shares_memory = true;                          // it lives in the memory of the ranks that train
  bool filtered_logprobs = true;                      // its log-probs are after top_k and top_p
  // Of backends with keys of their own for it; absent: policy's.
  std::optional<std::optional<double>> max_grad_norm;
  std::optional<double> learning_rate;
  std::optional<ScheduleFact> schedule;
  std::optional<BytesFact> bytes;  // absent: not known
};

}  // namespace hexad::config
