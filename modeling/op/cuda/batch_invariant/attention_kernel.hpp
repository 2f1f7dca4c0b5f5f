// Causal attention whose rows do not depend on what else is computed with them, nor on where keys lie: whole packed
// sequences, chunks of a prompt and single tokens over a paged cache give the same bits.
//
// What a query row and head is, for the keys 0 ... p of its sequence in tiles of 64 from key 0, in bf16 with fp32 sums
// (online softmax, arXiv 2205.14135; c = log2(e) / sqrt(dim), exponentials to the base 2):
//   s = q k^T, terms in ascending order, 16 at a time;  m' = max(m, c max(s));  e = bf16(2^(c s - m'))
//   o = o 2^(m - m') + e v,  l = l 2^(m - m') + e 1, keys in ascending order, 16 at a time
// and o / l at the end. A tile that the row sees nothing of changes nothing.
#pragma once
#include <cstdint>

struct CUstream_st;

namespace hexad::modeling::cuda {

// Query rows q_indptr[i] ... q_indptr[i + 1] are the last ones of sequence i. All distances are in elements; data is
// bf16, aligned to 16 bytes, and so are rows and heads.
struct InvariantAttention {
  const void* q = nullptr;    // [rows, heads, dim], heads next to each other
  int64_t q_stride = 0;       // from row to row
  void* out = nullptr;        // [rows, heads, dim], contiguous
  float* log_sums = nullptr;  // [rows, heads]: natural logarithm of the sum of exponentials of scaled scores; or null
  const int32_t* q_indptr = nullptr;

  // Key j of sequence i and head h: keys + place * key_stride + h * key_head_stride.
  const void *keys = nullptr, *values = nullptr;
  int64_t key_stride = 0, key_head_stride = 0, value_stride = 0, value_head_stride = 0;
  // Packed, without `blocks`: sequence i has the keys of rows q_indptr[i] ... q_indptr[i + 1], place q_indptr[i] + j.
  // With them it has blocks[block_indptr[i]] ... of block_size keys, the last one last_block_size[i]; key j lies at
  // place block * block_places + j % block_size.
  const int32_t *blocks = nullptr, *block_indptr = nullptr, *last_block_size = nullptr;
  int block_size = 0;
  int64_t block_places = 0;

  // Between the tiles of a shared beginning and a row's own ones: o fp32 [rows, heads, dim], then m and l [rows, heads,
  // 2]. With `leaves` all rows see all keys, whole tiles of them, and their state is left there in place of results. A
  // row whose resumes[row * resume_stride] is not 0 goes on from it, and its keys are those after the beginning.
  float *states = nullptr, *scalars = nullptr;
  bool leaves = false;
  const int32_t* resumes = nullptr;
  int resume_stride = 1;

  // Thread blocks: `items` tiles of item_rows (a multiple of 64) rows x (heads / kv_heads), the tile-th of a sequence
  // each, where `item_valid` is null or says so; or, without them, as many as the `most_rows` rows of the longest of
  // `sequences` need.
  const int32_t *item_sequence = nullptr, *item_tile = nullptr;
  const bool* item_valid = nullptr;
  int items = 0, item_rows = 0, sequences = 0, most_rows = 0;

  int heads = 0, kv_heads = 0, dim = 0;  // dim: 64 or 128
};
inline constexpr int kInvariantTileKeys = 64;

void invariant_attention(const InvariantAttention& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
