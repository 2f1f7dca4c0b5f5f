// Sharding a batch over data-parallel ranks and into micro-batches, with the row order of NeMo-RL's
// shard_by_batch_size.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/data/batch.hpp"
#include "core/data/packing/packer.hpp"

namespace hexad::data {

// ceil(value / multiple) * multiple, for multiple >= 1.
constexpr int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Rows sorted by length and dealt over the ranks; micro-batches of at most `max_tokens_per_microbatch` padded tokens
// with the same boundaries on every rank. Config: policy.dynamic_batching.
struct DynamicBatching {
  int64_t max_tokens_per_microbatch = 0;
  int64_t sequence_length_round = 1;  // padded width of a micro-batch is a multiple of this
};

enum class MicroBatchOrder : uint8_t { packer, largest_first };
MicroBatchOrder micro_batch_order_named(std::string_view name);  // throws Error(config)

// Micro-batches are packs: rows whose padded lengths together fit the budget. Config: policy.sequence_packing.
struct SequencePacking {
  PackingAlgorithm algorithm = PackingAlgorithm::modified_first_fit_decreasing;
  int64_t max_tokens_per_microbatch = 0;
  int64_t sequence_length_pad_multiple = 1;
  MicroBatchOrder order = MicroBatchOrder::packer;
  uint64_t shuffle_seed = 0;  // for first_fit_shuffle
};

struct ShardOptions {
  int64_t shards = 1;                      // data-parallel ranks
  std::optional<int64_t> batch_size = {};  // rows of a global batch (one optimizer step); absent: all rows
  bool allow_uneven_shards = false;        // the last ranks may get fewer rows, even none; excludes batch_size
  // Rows of a micro-batch, for neither dynamic batching nor packing; absent: a rank's whole share.
  std::optional<int64_t> micro_batch_size = {};
  std::optional<DynamicBatching> dynamic = {};
  std::optional<SequencePacking> packing = {};
  // The padded width S that a micro-batch never exceeds (dynamic batching); absent: no bound.
  std::optional<int64_t> max_width = {};
};

struct MicroBatch {
  std::vector<int64_t> rows;  // of the unsharded batch
  // Dynamic: padded width of every row. Packing: padded tokens of the pack. Else: longest row.
  int64_t length = 0;
};

// One rank's share: for every global batch its micro-batches in order of execution.
struct Shard {
  std::vector<std::vector<MicroBatch>> global_batches;
  std::vector<int64_t> rows() const;  // all of them, in order
};

struct Sharding {
  std::vector<Shard> shards;
  std::vector<int64_t> order;    // rows of shard 0, then of shard 1, ...
  std::vector<int64_t> inverse;  // outputs concatenated over shards -> original rows: original[i] = output[inverse[i]]
};

// Every rank gets as many micro-batches per global batch as every other (uneven shards excepted). Throws Error(data)
// when the rows do not divide or a row exceeds the budget, Error(config) when options exclude each other.
Sharding shard(std::span<const int64_t> lengths, const ShardOptions& options);

// Rows that belong together: the two sequences of a preference are never on two ranks, nor in two micro-batches, packed
// ones included. As shard(), of units of `rows_per_unit` consecutive rows each: sizes in `options` (batch_size,
// micro_batch_size) count units, budgets of tokens stay what they are, and the rows of a unit stand next to each other
// in their order. Throws Error(data) where the rows are no whole units, or one unit exceeds a budget.
Sharding shard_units(std::span<const int64_t> lengths, int64_t rows_per_unit, ShardOptions options);

// Rows in consecutive groups of `micro_batch_size`; throws Error(data) if they do not divide.
std::vector<std::vector<int64_t>> split_rows(std::span<const int64_t> rows, int64_t micro_batch_size);

// Part `index` of `parts` equal parts of the rows; throws Error(data) if they do not divide.
Batch chunk(const Batch& batch, int64_t index, int64_t parts);

}  // namespace hexad::data
