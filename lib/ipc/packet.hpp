// The contents of a frame: values one after the other. Both sides are the same program, so a struct travels as it lies
// in memory; what it points to follows it.
#pragma once
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hexad::ipc {

// The other side sent something that this side cannot read.
class BadPacket : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    put(uint64_t{value.size()});
    bytes_.append(value);
  }
  // A C string that may be NULL.
  void optional_text(const char* value) {
    put(uint8_t{value != nullptr});
    if (value) text(value);
  }
  template <typename T>
  void array(const T* data, int64_t count) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    put(count);
    if (count > 0) bytes_.append(reinterpret_cast<const char*>(data), static_cast<size_t>(count) * sizeof(T));
  }
  void append(std::string_view bytes) { bytes_.append(bytes); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Copies out what it reads, and throws BadPacket before it would read past the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(get<uint64_t>())); }
  // Whether optional_text wrote one; then text() follows.
  bool has() { return get<uint8_t>() != 0; }
  template <typename T>
  std::vector<T> array() {
    const auto count = get<int64_t>();
    if (count < 0 || static_cast<uint64_t>(count) > rest_.size() / sizeof(T)) throw BadPacket("an array is too long");
    std::vector<T> values(static_cast<size_t>(count));
    const std::string_view bytes = take(values.size() * sizeof(T));
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) throw BadPacket("a message is too short");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

}  // namespace hexad::ipc
