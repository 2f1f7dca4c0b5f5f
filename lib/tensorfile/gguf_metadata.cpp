#include "lib/tensorfile/gguf_cursor.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace hexad::tensorfile {
namespace {

enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = lead < 0x80                   ? 1
                       : lead >= 0xc2 && lead < 0xe0 ? 2
                       : lead >= 0xe0 && lead < 0xf0 ? 3
                       : lead >= 0xf0 && lead < 0xf5 ? 4
                                                     : 0;
    if (length == 0 || i + length > text.size()) return false;
    uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3fu);
    }
    if ((length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (length == 4 && (code < 0x10000 || code > 0x10ffff)))
      return false;
    i += length;
  }
  return true;
}

std::string read_text(GgufCursor& cursor, const std::string& key) {
  std::string text = cursor.read_string();
  if (!is_utf8(text)) fail(ErrorKind::data, "{}: metadata \"{}\" holds text that is not UTF-8", cursor.origin(), key);
  return text;
}

int64_t read_integer(GgufCursor& cursor, ValueType type, const std::string& key) {
  switch (type) {
    case ValueType::u8: return cursor.read<uint8_t>();
    case ValueType::i8: return cursor.read<int8_t>();
    case ValueType::u16: return cursor.read<uint16_t>();
    case ValueType::i16: return cursor.read<int16_t>();
    case ValueType::u32: return cursor.read<uint32_t>();
    case ValueType::i32: return cursor.read<int32_t>();
    case ValueType::i64: return cursor.read<int64_t>();
    default: break;
  }
  const auto value = cursor.read<uint64_t>();
  if (value > INT64_MAX) fail(ErrorKind::data, "{}: metadata \"{}\" is {}: too large", cursor.origin(), key, value);
  return static_cast<int64_t>(value);
}

// fp32 metadata was written from a decimal text (1e-05): the shortest decimal of the fp32 value is that text again.
double read_real(GgufCursor& cursor, ValueType type) {
  if (type == ValueType::f64) return cursor.read<double>();
  const auto value = cursor.read<float>();
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{}", value);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

template <typename T, typename Read>
std::vector<T> read_items(uint64_t count, Read read) {
  std::vector<T> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) items.push_back(read());
  return items;
}

size_t smallest_size(ValueType type) {
  switch (type) {
    case ValueType::u16:
    case ValueType::i16: return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32: return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
    case ValueType::string: return 8;
    default: return 1;
  }
}

void require_known(GgufCursor& cursor, ValueType type, const std::string& key) {
  if (type > ValueType::f64) {
    fail(ErrorKind::data, "{}: metadata \"{}\" is of unknown type {}", cursor.origin(), key,
         static_cast<uint32_t>(type));
  }
}

GgufValue read_array(GgufCursor& cursor, const std::string& key) {
  const auto type = cursor.read<ValueType>();
  require_known(cursor, type, key);
  if (type == ValueType::array)
    fail(ErrorKind::data, "{}: metadata \"{}\" is an array of arrays", cursor.origin(), key);
  const auto count = cursor.read<uint64_t>();
  cursor.require_items(count, smallest_size(type), "array elements");
  switch (type) {
    case ValueType::boolean: return read_items<bool>(count, [&] { return cursor.read<uint8_t>() != 0; });
    case ValueType::string: return read_items<std::string>(count, [&] { return read_text(cursor, key); });
    case ValueType::f32:
    case ValueType::f64: return read_items<double>(count, [&] { return read_real(cursor, type); });
    default: return read_items<int64_t>(count, [&] { return read_integer(cursor, type, key); });
  }
}

GgufValue read_value(GgufCursor& cursor, const std::string& key) {
  const auto type = cursor.read<ValueType>();
  require_known(cursor, type, key);
  switch (type) {
    case ValueType::boolean: return cursor.read<uint8_t>() != 0;
    case ValueType::string: return read_text(cursor, key);
    case ValueType::f32:
    case ValueType::f64: return read_real(cursor, type);
    case ValueType::array: return read_array(cursor, key);
    default: return read_integer(cursor, type, key);
  }
}

}  // namespace

std::map<std::string, GgufValue> read_gguf_metadata(GgufCursor& cursor, uint64_t count) {
  cursor.require_items(count, sizeof(uint64_t) + sizeof(uint32_t) + 1, "metadata entries");
  std::map<std::string, GgufValue> metadata;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string key = read_text(cursor, "(a key)");
    GgufValue value = read_value(cursor, key);
    if (!metadata.emplace(key, std::move(value)).second) {
      fail(ErrorKind::data, "{}: metadata \"{}\" appears twice", cursor.origin(), key);
    }
  }
  return metadata;
}

}  // namespace hexad::tensorfile
