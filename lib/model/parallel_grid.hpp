// The two rank grids of one world: dense layers lie on TP x CP x DP x PP, expert layers on ETP x EP x EDP x PP.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/rank_grid.hpp"

namespace hexad::model {

struct ParallelSizes {
  int64_t world = 1;
  int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::optional<int64_t> virtual_pipeline = {};  // absent: no interleaving
  std::optional<int64_t> expert_tensor = {};     // absent: as `tensor`
  int64_t optimizer_instances = 1;               // replicas of the distributed optimizer
  // Factors of `context`, the innermost first, for a2a+p2p attention; empty: no hierarchy.
  std::vector<int64_t> hierarchical_context = {};
  std::string order = "tp-cp-ep-dp-pp";
};

// A rank's place in both grids.
struct RankCoordinates {
  int64_t tp, cp, dp, pp;
  int64_t dp_cp;  // in the group that reduces dense gradients
  int64_t etp, ep, edp;
  bool word_embedding, position_embedding;  // the stage is one that holds them: first or last, first
};

// Sizes and rules of NVIDIA's parallel_state.py (initialize_model_parallel).
class ParallelGrid {
 public:
  // DP = world / (TP PP CP), EDP = world / (ETP EP PP). Throws Error when one of them is not whole, for interleaving
  // without a pipeline, factors that do not fit, and an order whose pipeline groups differ between the grids.
  explicit ParallelGrid(ParallelSizes sizes);

  const ParallelSizes& sizes() const { return sizes_; }
  int64_t data_parallel() const { return dense_.size(Axis::dp); }
  int64_t expert_data_parallel() const { return expert_.size(Axis::dp); }
  const RankGrid& dense() const { return dense_; }
  const RankGrid& expert() const { return expert_; }
  RankCoordinates coordinates(int64_t rank) const;

 private:
  ParallelSizes sizes_;
  RankGrid dense_, expert_;
};

}  // namespace hexad::model
