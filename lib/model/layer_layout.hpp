// A pipeline written out stage by stage: "Et*3|(tt|)*2,m|L".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/error.hpp"

namespace hexad::model {

enum class LayerType { embedding, decoder, mtp, loss };

const char* layer_type_name(LayerType type);
// E, t, m, L.
char layer_letter(LayerType type);
// "embedding", "decoder", "mtp", "loss", in any case, with spaces around; nothing for other names.
std::optional<LayerType> layer_type(const std::string& name);

// More are refused.
inline constexpr int64_t kMostLayers = 100000;

using StageLayers = std::vector<LayerType>;

// Text that is no layout: what() names the text and the problem.
class LayoutError : public Error {
 public:
  LayoutError(const std::string& layout, std::string problem);
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

// Of a string (pipeline_parallel_layer_layout.py:parse_str_to_list): E embedding, t decoder, m multi-token prediction,
// L loss, | next stage, x*n repeats the layer, (...)*n the group, which holds no other group; commas and spaces mean
// nothing. n may be 0, a stage empty. Throws LayoutError for other characters and for more than 100000 layers or
// stages.
std::vector<StageLayers> parse_layer_layout(const std::string& text);
// Of lists of names, as layer_type reads them. Throws Error for others.
std::vector<StageLayers> parse_layer_layout(const std::vector<std::vector<std::string>>& stages);

}  // namespace hexad::model
