// How ranks that share the tokens of a row exchange what attention needs: the keys both backends have for it.
#pragma once
#include <hexad/services.hpp>

#include "modeling/family/model_config.hpp"
#include "modeling/parallel/context/attention.hpp"

namespace hexad::modeling {

struct ContextSettings {
  std::vector<ContextExchange> exchange;  // one for all layers or one for each; empty with one rank
  int64_t inner = 1;                      // ranks of an inner group of a2a+p2p, which divide the context-parallel ranks
};

// Reads `section`.cp_comm_type, a text or a list of them, and `section`.hierarchical_context_parallel_sizes, the sizes
// of the inner and the outer groups (Megatron-Core's keys). `ranks` share the tokens and `tensor` others every layer's
// heads. Throws sdk::Error with the numbers and what would fit.
ContextSettings read_context_settings(const sdk::Config& config, const char* section, const ModelConfig& model,
                                      int64_t ranks, int64_t tensor);

}  // namespace hexad::modeling
