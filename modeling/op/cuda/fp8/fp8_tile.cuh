// What the FP8 casts of tiles share: their shape and their transposition.
#pragma once
#include "modeling/op/cuda/fp8/fp8_format.cuh"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {

// Bytes j of four words become word j.
__device__ inline void transpose_bytes(const uint32_t (&in)[4], uint32_t (&out)[4]) {
  const uint32_t low_a = __byte_perm(in[0], in[1], 0x5140), high_a = __byte_perm(in[0], in[1], 0x7362);
  const uint32_t low_b = __byte_perm(in[2], in[3], 0x5140), high_b = __byte_perm(in[2], in[3], 0x7362);
  out[0] = __byte_perm(low_a, low_b, 0x5410), out[1] = __byte_perm(low_a, low_b, 0x7632);
  out[2] = __byte_perm(high_a, high_b, 0x5410), out[3] = __byte_perm(high_a, high_b, 0x7632);
}

// A tile is 128 x 128; threads hold kWidth columns of it. The transposed tile is words of 4 rows [128 columns][32], in
// which a word's place is xored with its group of columns: both ways, the 32 threads of a warp (and the 16 of a half
// that read two words each) meet 32 banks.
constexpr int kWidth = 8;
constexpr int kTile = 128, kGroups = kTile / kWidth, kWords = kTile / 4;

__device__ inline int tile_word(int column, int word) { return column * kWords + (word ^ (2 * (column / kWidth))); }

}  // namespace hexad::modeling::cuda
