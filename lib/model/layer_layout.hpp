// A pipeline written out stage by stage: "Et*3|(tt|)*2,m|L".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hexad::model {

enum class LayerType { embedding, decoder, mtp, loss };

const char* layer_type_name(LayerType type);

// More are refused.
inline constexpr int64_t kMostLayers = 100000;

using StageLayers = std::vector<LayerType>;

// Of a string (pipeline_parallel_layer_layout.py:parse_str_to_list): E embedding, t decoder, m multi-token prediction, L
// loss, | next stage, x*n repeats the layer, (...)*n the group, which holds no other group; commas mean nothing. n may
// be 0, a stage empty. Throws Error for other characters and for more than 100000 layers or stages.
std::vector<StageLayers> parse_layer_layout(const std::string& text);
// Of lists of names: "embedding", "decoder", "mtp", "loss", in any case, with spaces around.
std::vector<StageLayers> parse_layer_layout(const std::vector<std::vector<std::string>>& stages);

}  // namespace hexad::model
