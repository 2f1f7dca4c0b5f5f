#include "core/data/packing/packed_rows.hpp"

#include <algorithm>
#include <numeric>

#include "lib/base/error.hpp"

namespace hexad::data {
namespace {

// Tokens used in every row.
std::vector<int64_t> row_tokens(std::span<const int64_t> lengths, std::span<const int64_t> sequences_per_row) {
  const int64_t sequences = std::accumulate(sequences_per_row.begin(), sequences_per_row.end(), int64_t{0});
  if (sequences != static_cast<int64_t>(lengths.size())) {
    fail(ErrorKind::data, "packed rows: {} sequences to place but {} given", sequences, lengths.size());
  }
  std::vector<int64_t> tokens;
  size_t next = 0;
  for (int64_t count : sequences_per_row) {
    tokens.push_back(std::accumulate(lengths.begin() + next, lengths.begin() + next + count, int64_t{0}));
    next += count;
  }
  return tokens;
}

Tensor causal_mask(std::span<const int64_t> used, int64_t width) {
  Tensor mask(DType::boolean, {static_cast<int64_t>(used.size()), width, width});
  uint8_t* cell = mask.span<uint8_t>().data();
  for (int64_t tokens : used) {
    for (int64_t query = 0; query < width; ++query, cell += width) {
      if (query < tokens) std::fill_n(cell, query + 1, uint8_t{1});
    }
  }
  return mask;
}

}  // namespace

PackedRows pack_into_rows(const Tensor& input_ids, std::span<const int64_t> lengths,
                          std::span<const int64_t> sequences_per_row, int64_t padding_value, int64_t min_width) {
  const std::vector<int64_t> used = row_tokens(lengths, sequences_per_row);
  const int64_t rows = static_cast<int64_t>(used.size());
  int64_t width = min_width;
  for (int64_t tokens : used) width = std::max(width, tokens);

  PackedRows result;
  result.input_ids = Tensor::full(DType::i64, {rows, width}, static_cast<double>(padding_value));
  result.position_ids = Tensor(DType::i64, {rows, width});
  result.attention_mask = causal_mask(used, width);
  result.cu_seqlens = {0};
  const std::span<const int64_t> source = input_ids.span<int64_t>();
  size_t sequence = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t* ids = result.input_ids.span<int64_t>().data() + row * width;
    int64_t* positions = result.position_ids.span<int64_t>().data() + row * width;
    for (int64_t i = 0; i < sequences_per_row[row]; ++i, ++sequence) {
      const int64_t length = lengths[sequence];
      ids = std::copy_n(source.begin() + static_cast<int64_t>(sequence) * input_ids.size(1), length, ids);
      std::iota(positions, positions + length, 0);
      positions += length;
      result.cu_seqlens.push_back(result.cu_seqlens.back() + length);
      result.max_seqlen = std::max(result.max_seqlen, length);
    }
  }
  return result;
}

}  // namespace hexad::data
