#include "lib/tensorfile/safetensors_dtype.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "lib/base/error.hpp"

namespace hexad::tensorfile {
namespace {

struct DTypeRow {
  DType dtype;
  size_t size;
  std::string_view name, torch;
};

constexpr std::array<DTypeRow, 15> rows = {{
    {DType::boolean, 1, "BOOL", "bool"},
    {DType::u8, 1, "U8", "uint8"},
    {DType::i8, 1, "I8", "int8"},
    {DType::u16, 2, "U16", "uint16"},
    {DType::i16, 2, "I16", "int16"},
    {DType::u32, 4, "U32", "uint32"},
    {DType::i32, 4, "I32", "int32"},
    {DType::u64, 8, "U64", "uint64"},
    {DType::i64, 8, "I64", "int64"},
    {DType::f8_e4m3, 1, "F8_E4M3", "float8_e4m3fn"},
    {DType::f8_e5m2, 1, "F8_E5M2", "float8_e5m2"},
    {DType::f16, 2, "F16", "float16"},
    {DType::bf16, 2, "BF16", "bfloat16"},
    {DType::f32, 4, "F32", "float32"},
    {DType::f64, 8, "F64", "float64"},
}};

const DTypeRow& row(DType dtype) { return rows[static_cast<size_t>(dtype)]; }

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "weights are stored little-endian");

size_t dtype_size(DType dtype) { return row(dtype).size; }
std::string_view dtype_name(DType dtype) { return row(dtype).name; }
std::string_view torch_name(DType dtype) { return row(dtype).torch; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& candidate : rows) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_torch_name(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const DTypeRow& candidate : rows) {
    if (candidate.torch == name) return candidate.dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65536 or more: infinity
  if (magnitude < 0x38800000u) {                        // subnormal: a multiple of 2^-24; the sum rounds to even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

void to_float32(DType dtype, std::span<const std::byte> in, std::span<float> out) {
  if (out.empty() && is_floating(dtype)) return;  // memcpy wants pointers even for nothing
  const std::byte* from = in.data();
  switch (dtype) {
    case DType::f32: std::memcpy(out.data(), from, out.size_bytes()); return;
    case DType::f16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = f16_to_float(load<uint16_t>(from + 2 * i));
      return;
    case DType::bf16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = bf16_to_float(load<uint16_t>(from + 2 * i));
      return;
    case DType::f64:
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(load<double>(from + 8 * i));
      return;
    default: fail(ErrorKind::data, "a tensor of dtype {} cannot be read as fp32", dtype_name(dtype));
  }
}

void from_float32(std::span<const float> in, DType dtype, std::span<std::byte> out) {
  if (in.empty() && is_floating(dtype)) return;
  std::byte* to = out.data();
  switch (dtype) {
    case DType::f32: std::memcpy(to, in.data(), in.size_bytes()); return;
    case DType::f16:
      for (size_t i = 0; i < in.size(); ++i) store(to + 2 * i, float_to_f16(in[i]));
      return;
    case DType::bf16:
      for (size_t i = 0; i < in.size(); ++i) store(to + 2 * i, float_to_bf16(in[i]));
      return;
    case DType::f64:
      for (size_t i = 0; i < in.size(); ++i) store(to + 8 * i, static_cast<double>(in[i]));
      return;
    default:
      fail(ErrorKind::data, "weights cannot be stored as {}: choose float32, bfloat16 or float16", torch_name(dtype));
  }
}

}  // namespace hexad::tensorfile
