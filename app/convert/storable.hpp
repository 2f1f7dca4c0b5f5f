// Whether values may be stored: finite, and within what a type can hold.
#pragma once
#include <filesystem>
#include <span>
#include <string>

namespace hexad::convert {

// The type that values become, and of which tensor of which file they are.
struct Storing {
  std::string tensor;
  std::filesystem::path source;
  std::string type;     // "float16"
  float infinite_from;  // the least magnitude that the type cannot hold
  std::string instead;  // "bfloat16 or float32": types that can
};

// Fails, naming tensor and element, for a value that is not finite before (broken weights) or after the conversion.
// `first`: the place of the first value in its tensor.
void require_storable(std::span<const float> values, const Storing& storing, size_t first = 0);

}  // namespace hexad::convert
