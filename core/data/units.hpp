// Sharding of rows that belong together: the two sequences of a preference are never on two ranks, nor in two
// micro-batches, packed ones included.
#pragma once
#include "core/data/batching.hpp"

namespace hexad::data {

// As shard(), of units of `rows_per_unit` consecutive rows each: sizes in `options` (batch_size, micro_batch_size)
// count units, budgets of tokens stay what they are, and the rows of a unit stand next to each other in their order.
// Throws Error(data) where the rows are no whole units, or one unit exceeds a budget.
Sharding shard_units(std::span<const int64_t> lengths, int64_t rows_per_unit, ShardOptions options);

}  // namespace hexad::data
