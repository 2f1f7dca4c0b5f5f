#include "lib/model/layer_placement.hpp"

#include <algorithm>
#include <utility>

#include "lib/model/error.hpp"

namespace hexad::model {
namespace {

int64_t chunks_of(const PlacementOptions& options) { return options.virtual_pipeline.value_or(1); }

void check_options(const PlacementOptions& options) {
  const int64_t fewest = options.layout ? 0 : 1;  // "E|L"
  if (options.layers < fewest || options.pipeline < 1 || chunks_of(options) < 1) {
    fail("layer placement: {} layers, pipeline {} and virtual pipeline {} must all be at least 1", options.layers,
         options.pipeline, chunks_of(options));
  }
  if (options.layers > kMostLayers || chunks_of(options) > kMostLayers) {
    fail("layer placement: {} layers and {} virtual stages; at most {} are placed", options.layers, chunks_of(options),
         kMostLayers);
  }
  if (options.pipeline == 1 && options.virtual_pipeline.value_or(1) > 1) {
    fail("layer placement: {} virtual stages want at least 2 pipeline ranks, got 1; leave the virtual stages out",
         *options.virtual_pipeline);
  }
  const bool uneven = options.first_stage || options.last_stage;
  const bool counted = options.count_embedding || options.count_loss;
  if (uneven && counted) {
    fail(
        "layer placement: num_layers_in_first_pipeline_stage or num_layers_in_last_pipeline_stage cannot be combined "
        "with account_for_embedding_in_pipeline_split or account_for_loss_in_pipeline_split; keep one pair");
  }
  if (options.layout && (uneven || counted)) {
    fail(
        "layer placement: pipeline_model_parallel_layout says it all and cannot be combined with "
        "num_layers_in_first/last_pipeline_stage or account_for_embedding/loss_in_pipeline_split");
  }
}

// total / parts, or the rule with the nearest totals that divide.
int64_t divided(int64_t total, int64_t parts, const char* what, const char* among) {
  if (total % parts != 0) {
    const int64_t below = total / parts * parts;
    fail("layer placement: {} {} must be divisible by the {} {}; the nearest are {}{}", total, what, parts, among,
         below > 0 ? fmt::format("{} and ", below) : "", below + parts);
  }
  return total / parts;
}

// Layers of each rank, with the embedding and the loss where they count as layers.
std::vector<int64_t> layers_by_rank(const PlacementOptions& options) {
  int64_t left = options.layers + options.count_embedding + options.count_loss, ranks = options.pipeline;
  for (const auto& [fixed, name] : {std::pair{options.first_stage, "first"}, std::pair{options.last_stage, "last"}}) {
    if (!fixed) continue;
    if (*fixed < 1 || *fixed > options.layers) {
      fail("layer placement: num_layers_in_{}_pipeline_stage is {}, want 1 to {}", name, *fixed, options.layers);
    }
    left -= *fixed;
    --ranks;
  }
  if (ranks < 0) {
    fail("layer placement: a pipeline of 1 has no separate first and last stage; leave both counts out");
  }
  if ((left > 0) != (ranks > 0) || left < 0) {
    fail(
        "layer placement: {} of {} layers are left for {} middle stages; the counts of the first and last stage must "
        "leave at least one layer for every middle stage, and none when there is no middle stage",
        left, options.layers, ranks);
  }
  int64_t middle = 0;
  if (ranks == options.pipeline) {
    const bool counted = options.count_embedding || options.count_loss;
    middle =
        divided(left, ranks, counted ? "layers (with the embedding and loss that count)" : "layers", "pipeline stages");
  } else if (ranks > 0) {
    middle = divided(left, ranks, "layers of the middle stages", "middle pipeline stages");
  }
  std::vector<int64_t> counts(options.pipeline, middle);
  if (options.first_stage) counts.front() = *options.first_stage;
  if (options.last_stage) counts.back() = *options.last_stage;
  return counts;
}

LayerPlacement place_by_count(const PlacementOptions& options) {
  const int64_t chunks = chunks_of(options), pipeline = options.pipeline;
  std::vector<int64_t> counts = layers_by_rank(options);
  for (int64_t& count : counts) count = divided(count, chunks, "layers of a pipeline stage", "virtual stages");
  LayerPlacement placement;
  placement.stages.assign(pipeline, std::vector<Stage>(chunks));
  placement.stages.front().front().embedding = true;
  placement.stages.back().back().loss = true;
  int64_t next = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t rank = 0; rank < pipeline; ++rank) {
      Stage& stage = placement.stages[rank][chunk];
      const int64_t count =
          counts[rank] - (options.count_embedding && stage.embedding) - (options.count_loss && stage.loss);
      stage.layers = {next, next + count};
      next += count;
    }
  }
  return placement;
}

// The rules for multi-token prediction: all its layers in one stage, the last of its rank, after every decoder.
void check_mtp(const PlacementOptions& options, const LayerPlacement& placement) {
  int64_t total = 0, stages_with = 0;
  for (size_t rank = 0; rank < placement.stages.size(); ++rank) {
    for (const Stage& stage : placement.stages[rank]) {
      total += stage.mtp_layers;
      stages_with += stage.mtp_layers > 0;
      if (stage.mtp_layers > 0 && &stage != &placement.stages[rank].back()) {
        fail(
            "pipeline layout: multi-token prediction stands in an earlier virtual stage of rank {}; it must be in the "
            "last virtual stage of its rank",
            rank);
      }
    }
  }
  if (total != options.mtp_layers) {
    fail("pipeline layout: {} multi-token prediction layers (m), but the model has {}", total, options.mtp_layers);
  }
  if (stages_with > 1) {
    fail("pipeline layout: multi-token prediction stands in {} stages; put all its layers into one", stages_with);
  }
}

void check_order(const PlacementOptions& options) {
  StageLayers all;
  for (const StageLayers& stage : *options.layout) all.insert(all.end(), stage.begin(), stage.end());
  const auto count = [&](LayerType type) { return std::count(all.begin(), all.end(), type); };
  if (all.empty()) fail("pipeline layout: it holds no layer");
  if (all.front() != LayerType::embedding) {
    fail("pipeline layout: the first layer must be the embedding (E), got {}", layer_type_name(all.front()));
  }
  if (all.back() != LayerType::loss) {
    fail("pipeline layout: the last layer must be the loss (L), got {}", layer_type_name(all.back()));
  }
  for (const LayerType once : {LayerType::embedding, LayerType::loss}) {
    if (count(once) != 1) fail("pipeline layout: {} must stand once, got {}", layer_type_name(once), count(once));
  }
  if (count(LayerType::decoder) != options.layers) {
    fail("pipeline layout: {} decoder layers (t), but the model has {}", count(LayerType::decoder), options.layers);
  }
  const auto mtp = std::find(all.begin(), all.end(), LayerType::mtp);
  if (std::find(mtp, all.end(), LayerType::decoder) != all.end()) {
    fail("pipeline layout: a decoder layer stands after multi-token prediction; move it before");
  }
}

LayerPlacement place_by_layout(const PlacementOptions& options) {
  const auto count = static_cast<int64_t>(options.layout->size());
  if (count == 0) fail("pipeline layout: it has no stage");
  const int64_t chunks = divided(count, options.pipeline, "stages of the pipeline layout", "pipeline ranks");
  if (options.virtual_pipeline && *options.virtual_pipeline != chunks) {
    fail(
        "pipeline layout: {} stages on {} ranks are {} virtual stages, but virtual_pipeline_model_parallel_size is {}; "
        "leave it out",
        count, options.pipeline, chunks, *options.virtual_pipeline);
  }
  check_order(options);
  LayerPlacement placement;
  placement.stages.assign(options.pipeline, std::vector<Stage>(chunks));
  int64_t next = 0;
  for (int64_t i = 0; i < count; ++i) {
    Stage& stage = placement.stages[i % options.pipeline][i / options.pipeline];
    const StageLayers& layers = (*options.layout)[i];
    const auto has = [&](LayerType type) { return std::count(layers.begin(), layers.end(), type); };
    stage = {{next, next + has(LayerType::decoder)},
             has(LayerType::embedding) > 0,
             has(LayerType::loss) > 0,
             has(LayerType::mtp)};
    next = stage.layers.end;
    if (stage.mtp_layers > 0 && i % options.pipeline != options.pipeline - 1) placement.mtp_standalone = true;
  }
  check_mtp(options, placement);
  return placement;
}

}  // namespace

LayerPlacement::Place LayerPlacement::place_of(int64_t layer) const {
  for (size_t rank = 0; rank < stages.size(); ++rank) {
    for (size_t chunk = 0; chunk < stages[rank].size(); ++chunk) {
      const Range& held = stages[rank][chunk].layers;
      if (layer >= held.begin && layer < held.end) return {static_cast<int64_t>(rank), static_cast<int64_t>(chunk)};
    }
  }
  fail("layer placement: no stage holds layer {}", layer);
}

LayerPlacement place_layers(const PlacementOptions& options) {
  check_options(options);
  return options.layout ? place_by_layout(options) : place_by_count(options);
}

}  // namespace hexad::model
