// Formulas: ggml's dequantize_row_* and quantize_row_q8_0_ref, its reference functions. Every block starts with its
// fp16 scale d (and minimum m).
#include "lib/tensorfile/gguf_block.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/tensorfile/safetensors_dtype.hpp"

namespace hexad::tensorfile {
namespace {

constexpr std::array<GgufBlock, 8> blocks = {{
    {GgufType::f32, "F32", 1, 4},
    {GgufType::f16, "F16", 1, 2},
    {GgufType::bf16, "BF16", 1, 2},
    {GgufType::q4_0, "Q4_0", 32, 18},
    {GgufType::q4_1, "Q4_1", 32, 20},
    {GgufType::q5_0, "Q5_0", 32, 22},
    {GgufType::q5_1, "Q5_1", 32, 24},
    {GgufType::q8_0, "Q8_0", 32, 34},
}};

constexpr std::array<std::string_view, 31> type_names = {
    "F32",   "F16",    "Q4_0", "Q4_1", "",     "",        "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
    "Q3_K",  "Q4_K",   "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8",   "I16",  "I32",  "I64",     "F64",    "IQ1_M",   "BF16"};

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

float half(const std::byte* from) { return f16_to_float(load<uint16_t>(from)); }

// 4-bit blocks: byte i holds element i in its low half and element i + 16 in its high half.
void expand_q4(const std::byte* quants, float scale, float offset, int zero, float* out) {
  for (int i = 0; i < 16; ++i) {
    const auto byte = std::to_integer<int>(quants[i]);
    out[i] = static_cast<float>((byte & 15) - zero) * scale + offset;
    out[i + 16] = static_cast<float>((byte >> 4) - zero) * scale + offset;
  }
}

// 5-bit blocks: as 4-bit ones, with the fifth bit of element i in bit i of a 32-bit word.
void expand_q5(const std::byte* high, const std::byte* quants, float scale, float offset, int zero, float* out) {
  const auto bits = load<uint32_t>(high);
  for (int i = 0; i < 16; ++i) {
    const auto byte = std::to_integer<int>(quants[i]);
    const int low = (byte & 15) | static_cast<int>(bits >> i & 1u) << 4;
    const int up = (byte >> 4) | static_cast<int>(bits >> (i + 16) & 1u) << 4;
    out[i] = static_cast<float>(low - zero) * scale + offset;
    out[i + 16] = static_cast<float>(up - zero) * scale + offset;
  }
}

void expand_block(GgufType type, const std::byte* in, float* out) {
  switch (type) {
    case GgufType::q4_0: expand_q4(in + 2, half(in), 0, 8, out); return;
    case GgufType::q4_1: expand_q4(in + 4, half(in), half(in + 2), 0, out); return;
    case GgufType::q5_0: expand_q5(in + 2, in + 6, half(in), 0, 16, out); return;
    case GgufType::q5_1: expand_q5(in + 4, in + 8, half(in), half(in + 2), 0, out); return;
    case GgufType::q8_0:
      for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(load<int8_t>(in + 2 + i)) * half(in);
      return;
    default: fail(ErrorKind::internal, "type {} has no blocks", static_cast<uint32_t>(type));
  }
}

void quantize_q8_0(const float* values, std::byte* out) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[i]));
  // ggml divides by any scale that is not 0; of one whose inverse is infinite the fp16 scale is 0 all the same.
  const float scale = largest / 127, inverse = scale >= std::numeric_limits<float>::min() ? 1 / scale : 0;
  const uint16_t half_scale = float_to_f16(scale);
  std::memcpy(out, &half_scale, sizeof half_scale);
  for (int i = 0; i < 32; ++i)
    out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(values[i] * inverse)));
}

}  // namespace

const GgufBlock* gguf_block(uint32_t type) {
  for (const GgufBlock& block : blocks) {
    if (static_cast<uint32_t>(block.type) == type) return &block;
  }
  return nullptr;
}

std::string_view gguf_type_name(uint32_t type) { return type < type_names.size() ? type_names[type] : ""; }

std::string readable_gguf_types() {
  std::vector<std::string_view> names;
  for (const GgufBlock& block : blocks) names.push_back(block.name);
  return joined(names);
}

std::vector<float> dequantize(const GgufTensor& tensor) {
  const GgufBlock& block = *gguf_block(static_cast<uint32_t>(tensor.type));
  std::vector<float> values(tensor.elements());
  switch (tensor.type) {
    case GgufType::f32: to_float32(DType::f32, tensor.data, values); return values;
    case GgufType::f16: to_float32(DType::f16, tensor.data, values); return values;
    case GgufType::bf16: to_float32(DType::bf16, tensor.data, values); return values;
    default: break;
  }
  for (uint64_t i = 0; i < values.size() / block.elements; ++i) {
    expand_block(tensor.type, tensor.data.data() + i * block.bytes, values.data() + i * block.elements);
  }
  return values;
}

void quantize(std::span<const float> values, GgufType type, std::span<std::byte> out) {
  switch (type) {
    case GgufType::f32: return from_float32(values, DType::f32, out);
    case GgufType::f16: return from_float32(values, DType::f16, out);
    case GgufType::bf16: return from_float32(values, DType::bf16, out);
    case GgufType::q8_0: break;
    default: fail(ErrorKind::internal, "values are not stored as type {}", static_cast<uint32_t>(type));
  }
  const GgufBlock& block = *gguf_block(static_cast<uint32_t>(type));
  if (values.size() % block.elements != 0 || out.size() != values.size() / block.elements * block.bytes)
    fail(ErrorKind::internal, "{} values do not make {} bytes of {}", values.size(), out.size(), block.name);
  for (size_t i = 0; i < values.size() / block.elements; ++i)
    quantize_q8_0(values.data() + i * block.elements, out.data() + i * block.bytes);
}

float gguf_infinite_from(GgufType type) {
  constexpr float half = 65520, brain = 0x1.ffp127f;  // halfway from the largest value to the next power of two
  switch (type) {
    case GgufType::f16: return half;
    case GgufType::bf16: return brain;
    case GgufType::q8_0: return half * 127;
    default: return std::numeric_limits<float>::infinity();
  }
}

}  // namespace hexad::tensorfile
