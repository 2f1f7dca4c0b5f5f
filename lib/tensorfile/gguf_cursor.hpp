// A bounds-checked reader over the bytes of a GGUF file, and over its section of keys and values.
#pragma once
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <type_traits>

#include "lib/base/error.hpp"
#include "lib/tensorfile/gguf.hpp"

namespace hexad::tensorfile {

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, std::string origin) : bytes_(bytes), origin_(std::move(origin)) {}

  template <typename T>
  T read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string read_string() {
    const auto length = read<uint64_t>();
    const std::span<const std::byte> text = take(length);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  // Fails unless `count` items of at least `size` bytes each can still follow: call it before reserving memory.
  void require_items(uint64_t count, uint64_t size, const char* what) const {
    if (count <= remaining() / size) return;
    fail(ErrorKind::data, "{}: truncated: {} {} are announced at byte {}, but only {} bytes follow", origin_, count,
         what, position_, remaining());
  }

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }
  const std::string& origin() const { return origin_; }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > remaining()) {
      fail(ErrorKind::data, "{}: truncated: {} bytes are wanted at byte {}, but the file has {}", origin_, size,
           position_, bytes_.size());
    }
    const std::span<const std::byte> result = bytes_.subspan(position_, size);
    position_ += size;
    return result;
  }

  std::span<const std::byte> bytes_;
  std::string origin_;
  uint64_t position_ = 0;
};

// Reads `count` pairs; fails on a key that appears twice, an unknown value type, an array of arrays, text that is not
// UTF-8.
std::map<std::string, GgufValue> read_gguf_metadata(GgufCursor& cursor, uint64_t count);

}  // namespace hexad::tensorfile
