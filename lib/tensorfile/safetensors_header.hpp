// The header of one safetensors file: parsed from hostile bytes, and written.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/tensorfile/safetensors.hpp"

namespace hexad::tensorfile {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by offset; data points into `file`
  std::map<std::string, std::string> metadata;
};

// Checks that every tensor lies inside the file, is as long as dtype and shape say, and that the tensors cover the data
// exactly once. `origin` names the file in messages.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& origin);

// The bytes before the data: length and JSON, padded with spaces to a multiple of 8.
std::string format_safetensors_header(const std::vector<TensorSpec>& specs,
                                      const std::map<std::string, std::string>& metadata);

}  // namespace hexad::tensorfile
