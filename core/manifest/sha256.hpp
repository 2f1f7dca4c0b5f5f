// SHA-256 (FIPS 180-4).
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace hexad::plugin {

// 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace hexad::plugin
