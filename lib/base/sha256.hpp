// SHA-256 (FIPS 180-4).
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace hexad {

// 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);
// The same without the CPU's own instructions for it, which tests compare with.
std::string sha256_hex_plain(std::span<const std::byte> bytes);

}  // namespace hexad
