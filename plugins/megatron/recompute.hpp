// What is kept of the forward pass for the backward pass: Megatron-Core's recompute_* keys.
#pragma once
#include <cstdint>
#include <vector>

#include <hexad/services.hpp>

#include "lib/model/range.hpp"
#include "modeling/op/checkpoint.hpp"

namespace hexad::megatron {

struct RecomputeSettings {
  // Whole layers: none; uniform: all, num_layers of them at a time; block: the first num_layers of a stage, each alone.
  enum class Layers { none, uniform, block } layers = Layers::none;
  int64_t num_layers = 1;
  modeling::Recompute modules;  // selective: parts of a layer
};

// activation_checkpointing turns it on, as NeMo-RL has it; alone it is full, uniform, one layer at a time. Throws
// sdk::Error for what the keys cannot mean.
RecomputeSettings read_recompute(const sdk::Config& config);

// Layers whose graph is one: of those that run again, only the input of the first is kept.
struct LayerUnit {
  model::Range layers;
  bool runs_again = false;
};

// The layers of a stage, cut into units.
std::vector<LayerUnit> layer_units(const RecomputeSettings& settings, const model::Range& layers);

}  // namespace hexad::megatron
