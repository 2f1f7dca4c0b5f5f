#include "modeling/weight/safetensors_header.hpp"

#include <cstring>

#include <nlohmann/json.hpp>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

const std::vector<std::pair<const char*, at::ScalarType>>& dtypes() {
  static const std::vector<std::pair<const char*, at::ScalarType>> table = {
      {"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf}, {"F64", at::kDouble}, {"I64", at::kLong},
      {"I32", at::kInt},   {"I16", at::kShort},     {"I8", at::kChar},  {"U8", at::kByte},    {"BOOL", at::kBool},
  };
  return table;
}

uint64_t checked_bytes(const std::vector<int64_t>& shape, at::ScalarType dtype, const std::string& what) {
  uint64_t bytes = c10::elementSize(dtype);
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, uint64_t(size), &bytes)) fail("{}: impossible shape", what);
  }
  return bytes;
}

HeaderEntry parse_entry(const nlohmann::json& json, uint64_t data_begin, uint64_t size, const std::string& what) {
  HeaderEntry entry{};
  const std::string dtype = json.at("dtype").get<std::string>();
  bool known = false;
  for (const auto& [name, type] : dtypes()) {
    if (dtype == name) entry.dtype = type, known = true;
  }
  if (!known) fail("{}: dtype {} is not supported", what, dtype);
  entry.shape = json.at("shape").get<std::vector<int64_t>>();
  const auto offsets = json.at("data_offsets").get<std::vector<uint64_t>>();
  if (offsets.size() != 2 || offsets[0] > offsets[1]) fail("{}: malformed data_offsets", what);
  const uint64_t wanted = checked_bytes(entry.shape, entry.dtype, what);
  if (offsets[1] - offsets[0] != wanted) {
    fail("{}: {} bytes are stored, but its shape [{}] and dtype {} need {}", what, offsets[1] - offsets[0],
         fmt::join(entry.shape, ", "), dtype, wanted);
  }
  if (offsets[1] > size - data_begin) {
    fail("{}: file is truncated: the tensor ends at byte {}, the file at {}", what, data_begin + offsets[1], size);
  }
  entry.begin = data_begin + offsets[0];
  entry.end = data_begin + offsets[1];
  return entry;
}

}  // namespace

std::map<std::string, HeaderEntry> parse_safetensors_header(const uint8_t* data, uint64_t size,
                                                            const std::string& origin) {
  if (size < 8) fail("{}: file is truncated: {} bytes, a safetensors header needs at least 8", origin, size);
  uint64_t length;
  std::memcpy(&length, data, 8);
  if (length > size - 8) {
    fail("{}: file is truncated or not safetensors: the header needs {} bytes, the file has {}", origin, length, size);
  }
  std::map<std::string, HeaderEntry> entries;
  try {
    const nlohmann::json header = nlohmann::json::parse(data + 8, data + 8 + length);
    for (const auto& [name, json] : header.items()) {
      if (name == "__metadata__") continue;
      entries.emplace(name, parse_entry(json, 8 + length, size, origin + ": " + name));
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}: malformed safetensors header: {}", origin, error.what());
  }
  return entries;
}

const char* safetensors_dtype(at::ScalarType dtype) {
  for (const auto& [name, type] : dtypes()) {
    if (type == dtype) return name;
  }
  fail("dtype {} cannot be stored as safetensors", c10::toString(dtype));
}

}  // namespace hexad::modeling
