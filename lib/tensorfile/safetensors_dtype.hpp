// Element types of stored tensors and their conversion to and from fp32.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hexad::tensorfile {

enum class DType { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f8_e4m3, f8_e5m2, f16, bf16, f32, f64 };

size_t dtype_size(DType dtype);            // bytes an element
std::string_view dtype_name(DType dtype);  // safetensors' name: "F32", "BF16", "I64", "BOOL" ...
std::string_view torch_name(DType dtype);  // the name in config.json: "float32", "bfloat16", "int64" ...
std::optional<DType> dtype_from_name(std::string_view safetensors_name);
std::optional<DType> dtype_from_torch_name(std::string_view name);
bool is_floating(DType dtype);  // f16, bf16, f32, f64

// IEEE binary16 and bfloat16; to_* round to nearest even, nan stays nan.
float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);
float bf16_to_float(uint16_t bits);
uint16_t float_to_bf16(float value);

// `in` holds out.size() elements of a floating `dtype`, little-endian; any alignment.
void to_float32(DType dtype, std::span<const std::byte> in, std::span<float> out);
// The other way; `out` holds in.size() elements.
void from_float32(std::span<const float> in, DType dtype, std::span<std::byte> out);

}  // namespace hexad::tensorfile
