#include "lib/base/sha256.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace hexad {
namespace {

using State = Sha256::State;

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

// One block of 64 bytes.
void add_block(State& state, const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += sum[i];
}

void add_blocks(State& state, const std::byte* blocks, size_t count) {
  for (size_t i = 0; i < count; ++i) add_block(state, blocks + 64 * i);
}

#if defined(__x86_64__)
// The same with the CPU's own instructions (Intel SHA extensions), which take a tenth of the time: a plugin has
// megabytes, and every worker reads them. The instructions hold the state as the words a, b, e, f and c, d, g, h.
__attribute__((target("sha,sse4.1"))) void add_blocks_sha(State& state, const std::byte* blocks, size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);  // big-endian words
  const auto words = [](const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); };
  const __m128i cdab = _mm_shuffle_epi32(words(state.data()), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(words(state.data() + 4), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (size_t i = 0; i < count; ++i, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words of the schedule
#pragma GCC unroll 16
    for (size_t four = 0; four < 16; ++four) {
      __m128i& now = w[four % 4];
      if (four < 4) {
        now = _mm_shuffle_epi8(words(blocks + 16 * four), swap);
      } else {
        const __m128i next = w[(four + 1) % 4], last = w[(four + 3) % 4];
        const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, w[(four + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(sum, last);
      }
      const __m128i added = _mm_add_epi32(now, words(kRound.data() + 4 * four));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before), cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha() {  // gcc 12 knows no name for it in __builtin_cpu_supports: leaf 7, EBX, bit 29
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1) && __builtin_cpu_supports("sse4.1");
}
#endif

using AddBlocks = Sha256::AddBlocks;

AddBlocks fastest() {
#if defined(__x86_64__)
  static const bool with_instructions = has_sha();
  if (with_instructions) return add_blocks_sha;
#endif
  return add_blocks;
}

}  // namespace

Sha256::Sha256() : Sha256(fastest()) {}
Sha256::Sha256(AddBlocks add)
    : add_(add), state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::add(std::span<const std::byte> bytes) {
  const size_t waiting = size_ % 64;
  size_ += bytes.size();
  if (waiting > 0) {
    const size_t taken = std::min(64 - waiting, bytes.size());
    if (taken > 0) std::memcpy(block_.data() + waiting, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    if (waiting + taken < 64) return;
    add_(state_, block_.data(), 1);
  }
  add_(state_, bytes.data(), bytes.size() / 64);
  const std::span<const std::byte> rest = bytes.last(bytes.size() % 64);
  std::copy(rest.begin(), rest.end(), block_.begin());
}

std::string Sha256::hex() {
  // What waits, a 1 bit, zeros, and the length in bits, big-endian, at the end of a block.
  std::array<std::byte, 128> tail{};
  const size_t rest = size_ % 64, end = rest < 56 ? 64 : 128;
  std::copy_n(block_.begin(), rest, tail.begin());
  tail[rest] = std::byte{0x80};
  for (size_t i = 0; i < 8; ++i) tail[end - 1 - i] = static_cast<std::byte>(size_ * 8 >> 8 * i);
  add_(state_, tail.data(), end / 64);
  std::string hex;
  for (const uint32_t word : state_) hex += fmt::format("{:08x}", word);
  return hex;
}

Sha256 Sha256::plain() { return Sha256(add_blocks); }

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

}  // namespace hexad
