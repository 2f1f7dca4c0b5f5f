#include "core/config/pipeline_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/model/layer_layout.hpp"

namespace hexad::config {
namespace {

PipelineLayout from_text(const std::string& text) {
  PipelineLayout layout;
  try {
    for (const model::StageLayers& stage : model::parse_layer_layout(text)) {
      std::string& letters = layout.stages.emplace_back();
      for (const model::LayerType layer : stage) letters += model::layer_letter(layer);
    }
    return layout;
  } catch (const model::LayoutError& error) {
    return {{}, error.problem()};
  }
}

PipelineLayout from_list(const Node& list) {
  PipelineLayout layout;
  for (const Node& stage : list.items()) {
    std::string& letters = layout.stages.emplace_back();
    if (!stage.is_list()) return {{}, fmt::format("{} is no stage; wanted a list of lists", stage.describe())};
    for (const Node& layer : stage.items()) {
      const auto type = layer.is_string() ? model::layer_type(layer.as_string()) : std::nullopt;
      if (!type) {
        return {{}, fmt::format("{} is no layer; there are embedding, decoder, mtp and loss", layer.describe())};
      }
      letters += model::layer_letter(*type);
    }
  }
  return layout;
}

}  // namespace

size_t PipelineLayout::count(char layer) const {
  size_t found = 0;
  for (const std::string& stage : stages) found += std::ranges::count(stage, layer);
  return found;
}

PipelineLayout pipeline_layout(const Node& value) {
  return value.is_list() ? from_list(value) : from_text(value.as_string());
}

}  // namespace hexad::config
