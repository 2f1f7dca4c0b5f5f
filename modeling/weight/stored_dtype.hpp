// The header of a .safetensors file: 8 bytes little-endian length, JSON, then the tensors' bytes.
// Format: huggingface/safetensors README, "Format".
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace hexad::modeling {

struct HeaderEntry {
  std::vector<int64_t> shape;
  at::ScalarType dtype;
  uint64_t begin, end;  // bytes in the file
};

// `data` holds the whole file; `origin` names it in errors. Throws Error: too short, header beyond the file, malformed
// JSON, unknown dtype, a tensor whose bytes lie outside the file (truncated) or do not fit its shape.
std::map<std::string, HeaderEntry> parse_safetensors_header(const uint8_t* data, uint64_t size,
                                                            const std::string& origin);

// "F32" and so on; throws Error for a dtype that safetensors lacks.
const char* safetensors_dtype(at::ScalarType dtype);

}  // namespace hexad::modeling
