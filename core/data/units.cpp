#include "core/data/batching.hpp"

#include <algorithm>

#include "lib/base/error.hpp"

namespace hexad::data {
namespace {

int64_t padded_sum(std::span<const int64_t> unit, int64_t multiple) {
  int64_t sum = 0;
  for (const int64_t length : unit) sum += round_up(length, multiple);
  return sum;
}

[[noreturn]] void refuse_unit(int64_t rows, int64_t tokens, int64_t budget) {
  fail(ErrorKind::data,
       "batching: {} sequences that stay in one micro-batch (a preference) have {} padded tokens, more than its {}; "
       "raise train_mb_tokens / logprob_mb_tokens or lower policy.max_total_sequence_length",
       rows, tokens, budget);
}

// What a unit counts as among others: its tokens where micro-batches are packed, else its longest row.
std::vector<int64_t> unit_lengths(std::span<const int64_t> lengths, int64_t rows, const ShardOptions& options) {
  std::vector<int64_t> result;
  for (size_t begin = 0; begin < lengths.size(); begin += static_cast<size_t>(rows)) {
    const auto unit = lengths.subspan(begin, static_cast<size_t>(rows));
    const int64_t longest = *std::max_element(unit.begin(), unit.end());
    if (options.packing) {
      const int64_t tokens = padded_sum(unit, options.packing->sequence_length_pad_multiple);
      const int64_t budget = options.packing->max_tokens_per_microbatch;
      if (tokens > budget) refuse_unit(rows, tokens, budget);
      result.push_back(tokens);
      continue;
    }
    if (options.dynamic) {
      const int64_t tokens = rows * round_up(longest, options.dynamic->sequence_length_round);
      const int64_t budget = options.dynamic->max_tokens_per_microbatch;
      if (tokens > budget) refuse_unit(rows, tokens, budget);
    }
    result.push_back(longest);
  }
  return result;
}

void expand(std::vector<int64_t>& units, int64_t rows) {
  std::vector<int64_t> expanded;
  for (const int64_t unit : units) {
    for (int64_t i = 0; i < rows; ++i) expanded.push_back(unit * rows + i);
  }
  units = std::move(expanded);
}

}  // namespace

Sharding shard_units(std::span<const int64_t> lengths, int64_t rows_per_unit, ShardOptions options) {
  if (rows_per_unit == 1) return shard(lengths, options);
  const int64_t total = static_cast<int64_t>(lengths.size());
  if (rows_per_unit < 1 || total % rows_per_unit != 0)
    fail(ErrorKind::data, "batching: {} rows are not a multiple of {} that belong together", total, rows_per_unit);
  const std::vector<int64_t> units = unit_lengths(lengths, rows_per_unit, options);
  if (options.dynamic) options.dynamic->max_tokens_per_microbatch /= rows_per_unit;
  Sharding result = shard(units, options);
  for (Shard& share : result.shards) {
    for (auto& micro_batches : share.global_batches) {
      for (MicroBatch& part : micro_batches) expand(part.rows, rows_per_unit);
    }
  }
  expand(result.order, rows_per_unit);
  result.inverse = inverse_permutation(result.order);
  return result;
}

}  // namespace hexad::data
