// Quantised block formats of GGUF: sizes, names and expansion to fp32.
#pragma once
#include <optional>
#include <string_view>

#include "lib/tensorfile/gguf.hpp"

namespace hexad::tensorfile {

struct GgufBlock {
  GgufType type;
  std::string_view name;
  uint64_t elements, bytes;  // of one block
};

// The format of a type as the file numbers it; nullptr when it cannot be read.
const GgufBlock* gguf_block(uint32_t type);
// Name of any type of ggml, readable or not ("Q4_K"); empty when unknown.
std::string_view gguf_type_name(uint32_t type);
// "F32, F16, ...": the types that can be read.
std::string readable_gguf_types();

}  // namespace hexad::tensorfile
