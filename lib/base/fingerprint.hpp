// Whether bytes are those of before: FNV-1a of 64 bits (Fowler, Noll, Vo). Tells accidents apart, not forgeries.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace hexad {

class Fingerprint {
 public:
  // Parts are told apart: "ab", "c" is not "a", "bc".
  void add(std::string_view part) {
    bytes(part);
    const uint64_t size = part.size();
    bytes({reinterpret_cast<const char*>(&size), sizeof size});
  }
  template <typename T>
  void add(std::span<const T> values) {
    add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
  }
  // 16 hex digits.
  std::string hex() const { return fmt::format("{:016x}", state_); }

 private:
  void bytes(std::string_view text) {
    for (const unsigned char byte : text) state_ = (state_ ^ byte) * 0x100000001b3;
  }
  uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace hexad
