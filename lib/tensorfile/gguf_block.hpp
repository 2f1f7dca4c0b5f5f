// Block formats of GGUF: sizes, names, and values that become blocks. The way back: dequantize in gguf.hpp.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
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

// Stores fp32 values as F32, F16, BF16 or Q8_0 (fails on another type): `out` holds their whole blocks. Q8_0 as ggml's
// quantize_row_q8_0_ref: of 32 values the fp16 scale d = max|x| / 127, and x / d rounded half away from zero. Values
// must be finite, and below gguf_infinite_from(type).
void quantize(std::span<const float> values, GgufType type, std::span<std::byte> out);
// The least magnitude that the type would make infinite: one that rounds to infinity, or whose block's scale does.
float gguf_infinite_from(GgufType type);

}  // namespace hexad::tensorfile
