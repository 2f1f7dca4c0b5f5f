// What an update of weights says of them besides their bytes.
#pragma once
#include <hexad/services.hpp>

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace hexad::refit {

struct ElementType {
  const char* torch;        // an attribute of the module
  const char* safetensors;  // in a file's header
};
// Throws sdk::Error for a type that no server takes.
ElementType element_type(DLDataType type, const char* weight);

// Throws sdk::Error for a part of a weight.
void check_whole(const hexad_weight_slice& slice);

using Slices = std::span<const hexad_weight_slice* const>;

// A bucket's slices, those with the largest elements first: end to end, each then begins on a multiple of its own.
// Throws for a part of a weight, or one that is not contiguous.
std::vector<const hexad_weight_slice*> in_order(const hexad_weight_list& bucket);

// {"names", "dtype_names", "shapes"}.
nlohmann::ordered_json describe_weights(Slices slices);

}  // namespace hexad::refit
