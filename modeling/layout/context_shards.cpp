#include "modeling/layout/context_shards.hpp"

#include <algorithm>

#include "modeling/error.hpp"

namespace hexad::modeling::layout {
namespace {

void check_boundaries(std::span<const int64_t> cu_seqlens, int64_t ranks) {
  if (ranks < 1) fail("context parallel: {} ranks, want at least 1", ranks);
  if (cu_seqlens.empty() || cu_seqlens[0] != 0) {
    fail("context parallel: document boundaries must begin with 0, got [{}]", fmt::join(cu_seqlens, ", "));
  }
  const int64_t multiple = ranks == 1 ? 1 : 2 * ranks;
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t length = cu_seqlens[i + 1] - cu_seqlens[i];
    if (length < 0 || length % multiple != 0) {
      fail("context parallel: document {} has {} tokens, want a multiple of 2 x {} ranks = {}; pad it to {}", i, length,
           ranks, multiple, (std::max<int64_t>(length, 0) + multiple - 1) / multiple * multiple);
    }
  }
}

void add_slice(std::vector<model::Range>& slices, model::Range slice) {
  if (slice.size() == 0) return;
  if (!slices.empty() && slices.back().end == slice.begin) {
    slices.back().end = slice.end;
  } else {
    slices.push_back(slice);
  }
}

}  // namespace

ContextShard context_shard(std::span<const int64_t> cu_seqlens, int64_t ranks, int64_t rank) {
  check_boundaries(cu_seqlens, ranks);
  if (rank < 0 || rank >= ranks) fail("context parallel: rank {} is outside the group of {}", rank, ranks);
  ContextShard shard;
  shard.cu_seqlens = {0};
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t begin = cu_seqlens[i], end = cu_seqlens[i + 1];
    shard.cu_seqlens.push_back(end / ranks);
    if (ranks == 1) {
      add_slice(shard.slices, {begin, end});
      continue;
    }
    const int64_t chunk = (end - begin) / (2 * ranks);
    add_slice(shard.slices, {begin + rank * chunk, begin + (rank + 1) * chunk});
    add_slice(shard.slices, {end - (rank + 1) * chunk, end - rank * chunk});
  }
  return shard;
}

std::vector<int64_t> shard_indices(const ContextShard& shard) {
  std::vector<int64_t> indices;
  indices.reserve(shard.tokens());
  for (const model::Range& slice : shard.slices) {
    for (int64_t i = slice.begin; i < slice.end; ++i) indices.push_back(i);
  }
  return indices;
}

std::vector<int64_t> gathered_positions(std::span<const int64_t> cu_seqlens, int64_t ranks) {
  return merged_positions(cu_seqlens, ranks, 0, ranks);
}

std::vector<int64_t> merged_positions(std::span<const int64_t> cu_seqlens, int64_t ranks, int64_t first,
                                      int64_t count) {
  check_boundaries(cu_seqlens, ranks);
  std::vector<int64_t> place(static_cast<size_t>(cu_seqlens.back()), -1), positions;
  int64_t next = 0;
  for (int64_t rank = first; rank < first + count; ++rank) {
    for (const model::Range& slice : context_shard(cu_seqlens, ranks, rank).slices) {
      for (int64_t i = slice.begin; i < slice.end; ++i) place[i] = next++;
    }
  }
  positions.reserve(static_cast<size_t>(next));
  std::ranges::copy_if(place, std::back_inserter(positions), [](int64_t at) { return at >= 0; });
  return positions;
}

std::vector<int64_t> flatten_cu_seqlens(const std::vector<std::vector<int64_t>>& rows, int64_t row_length) {
  std::vector<int64_t> merged = {0};
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<int64_t>& row = rows[i];
    if (row.empty() || row.front() != 0 || row.back() != row_length || !std::is_sorted(row.begin(), row.end())) {
      fail("packed rows: the boundaries of row {} must rise from 0 to its {} tokens, got [{}]", i, row_length,
           fmt::join(row, ", "));
    }
    const int64_t offset = static_cast<int64_t>(i) * row_length;
    const auto end = std::find(row.begin(), row.end(), row_length);
    for (auto boundary = row.begin() + 1; boundary <= end && boundary != row.end(); ++boundary) {
      merged.push_back(offset + *boundary);
    }
  }
  return merged;
}

}  // namespace hexad::modeling::layout
