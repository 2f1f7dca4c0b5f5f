// Which layers of the model every pipeline stage holds.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/model/layer_layout.hpp"
#include "lib/model/range.hpp"

namespace hexad::model {

struct PlacementOptions {
  int64_t layers = 0;  // decoder layers of the model; 0 with a layout alone
  int64_t pipeline = 1;
  std::optional<int64_t> virtual_pipeline = {};
  // num_layers_in_first_pipeline_stage, ..._last_...: the others share the rest.
  std::optional<int64_t> first_stage = {}, last_stage = {};
  // account_for_embedding_in_pipeline_split, ..._loss_...: each counts as one layer of the first / last stage.
  bool count_embedding = false, count_loss = false;
  // pipeline_model_parallel_layout: stage v PP + p is virtual stage v of rank p. Excludes the four above.
  std::optional<std::vector<StageLayers>> layout = {};
  int64_t mtp_layers = 0;  // multi-token prediction, in `layout`
};

struct Stage {
  Range layers;  // decoder layers of the model; may be empty
  bool embedding = false, loss = false;
  int64_t mtp_layers = 0;
  bool operator==(const Stage&) const = default;
};

struct LayerPlacement {
  std::vector<std::vector<Stage>> stages;  // [pipeline rank][virtual stage]
  bool mtp_standalone = false;             // multi-token prediction is not on the last rank
  int64_t virtual_pipeline() const { return static_cast<int64_t>(stages[0].size()); }
  // Rank and virtual stage of a decoder layer.
  struct Place {
    int64_t rank, chunk;
  };
  Place place_of(int64_t layer) const;
};

// Source: NVIDIA's transformer_block.py (get_num_layers_to_build), transformer_layer.py (get_transformer_layer_offset),
// the checks of transformer_config.py, pipeline_parallel_layer_layout.py. The stages of virtual stage 0 come first,
// then those of 1: layers run over ranks, then over virtual stages. Throws Error for sizes below 1, counts that do not
// divide, and layouts that break its rules.
LayerPlacement place_layers(const PlacementOptions& options);

}  // namespace hexad::model
