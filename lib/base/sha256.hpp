// SHA-256 (FIPS 180-4): about 1.3 GB/s where the CPU has instructions for it, 0.2 where it has not.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hexad {

// Of what comes in parts.
class Sha256 {
 public:
  using State = std::array<uint32_t, 8>;
  using AddBlocks = void (*)(State& state, const std::byte* blocks, size_t count);

  Sha256();
  // Without the CPU's own instructions, which tests compare with.
  static Sha256 plain();

  void add(std::span<const std::byte> bytes);
  // 64 lower-case hex digits of all of it. The last call.
  std::string hex();

 private:
  explicit Sha256(AddBlocks add);

  AddBlocks add_;
  State state_;
  std::array<std::byte, 64> block_{};  // the end, as long as it is no whole block
  uint64_t size_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace hexad
