#include "core/data/batching.hpp"

#include <algorithm>
#include <numeric>

#include "lib/base/error.hpp"

namespace hexad::data {
namespace {

std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> rows(std::max<int64_t>(0, end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

int64_t longest(std::span<const int64_t> lengths, std::span<const int64_t> rows) {
  int64_t result = 0;
  for (int64_t row : rows) result = std::max(result, lengths[row]);
  return result;
}

void check_options(int64_t total, int64_t batch_size, const ShardOptions& options) {
  if (options.shards < 1) fail(ErrorKind::config, "sharding: want at least one shard, got {}", options.shards);
  if (options.allow_uneven_shards && options.batch_size) {
    fail(ErrorKind::config, "sharding: a global batch size cannot be set when shards may be uneven");
  }
  if (options.dynamic && options.packing) {
    fail(ErrorKind::config,
         "policy.dynamic_batching and policy.sequence_packing exclude each other; enable one of them");
  }
  if (options.allow_uneven_shards && (options.dynamic || options.packing)) {
    fail(ErrorKind::config, "sharding: uneven shards go with neither dynamic batching nor sequence packing");
  }
  if (batch_size < 0 || (batch_size == 0 && total > 0) || (batch_size > 0 && total % batch_size != 0)) {
    fail(ErrorKind::data, "sharding: {} rows are not a multiple of the global batch size {}", total, batch_size);
  }
  if (!options.allow_uneven_shards && batch_size % options.shards != 0) {
    fail(ErrorKind::data, "sharding: a global batch of {} rows is not a multiple of {} data-parallel ranks", batch_size,
         options.shards);
  }
}

std::vector<MicroBatch> plain_micro_batches(std::span<const int64_t> lengths, std::span<const int64_t> rows,
                                            const ShardOptions& options) {
  std::vector<MicroBatch> result;
  if (rows.empty()) return result;
  const int64_t count = static_cast<int64_t>(rows.size());
  const int64_t size = options.micro_batch_size.value_or(count);
  if (options.allow_uneven_shards) {
    for (int64_t i = 0; i < count; i += size) {
      const auto part = rows.subspan(i, std::min(size, count - i));
      result.push_back({{part.begin(), part.end()}, longest(lengths, part)});
    }
    return result;
  }
  for (std::vector<int64_t>& part : split_rows(rows, size)) {
    const int64_t width = longest(lengths, part);
    result.push_back({std::move(part), width});
  }
  return result;
}

// Consecutive rows from `begin`, dealt in order: each rank a block.
void add_plain(std::span<const int64_t> lengths, int64_t begin, int64_t count, const ShardOptions& options,
               std::vector<Shard>& shards) {
  const int64_t share = (count + options.shards - 1) / options.shards;
  for (int64_t rank = 0; rank < options.shards; ++rank) {
    const int64_t first = std::min(rank * share, count);
    const int64_t last = std::min(first + share, count);
    shards[rank].global_batches.push_back(plain_micro_batches(lengths, range(begin + first, begin + last), options));
  }
}

// Boundaries [begin, end) within a rank's rows and the padded width, the same for all ranks: `widest[i]` is the longest
// of the ranks' i-th rows.
struct Span {
  int64_t begin, end, width;
};
std::vector<Span> grow_spans(std::span<const int64_t> widest, const ShardOptions& options) {
  const DynamicBatching& dynamic = *options.dynamic;
  std::vector<Span> spans;
  for (int64_t i = 0; i < static_cast<int64_t>(widest.size()); ++i) {
    int64_t width = round_up(widest[i], dynamic.sequence_length_round);
    if (options.max_width) width = std::min(width, *options.max_width);
    if (width > dynamic.max_tokens_per_microbatch) {
      fail(
          ErrorKind::data,
          "dynamic batching: a sequence of {} tokens (padded to a multiple of {}) exceeds the micro-batch budget of {} "
          "tokens; raise train_mb_tokens / logprob_mb_tokens or lower the sequence length",
          width, dynamic.sequence_length_round, dynamic.max_tokens_per_microbatch);
    }
    if (!spans.empty()) {
      Span& last = spans.back();
      const int64_t wider = std::max(last.width, width);
      if ((last.end - last.begin + 1) * wider <= dynamic.max_tokens_per_microbatch) {
        last.end = i + 1;
        last.width = wider;
        continue;
      }
    }
    spans.push_back({i, i + 1, width});
  }
  return spans;
}

// Rows by ascending length, dealt over the ranks like cards, so that all ranks see similar lengths.
void add_dynamic(std::span<const int64_t> lengths, int64_t begin, int64_t count, const ShardOptions& options,
                 std::vector<Shard>& shards) {
  std::vector<int64_t> sorted = range(begin, begin + count);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) { return lengths[a] < lengths[b]; });
  const int64_t share = count / options.shards;
  std::vector<int64_t> widest(share, 0);
  for (int64_t i = 0; i < count; ++i) {
    widest[i / options.shards] = std::max(widest[i / options.shards], lengths[sorted[i]]);
  }
  const std::vector<Span> spans = grow_spans(widest, options);
  for (int64_t rank = 0; rank < options.shards; ++rank) {
    std::vector<MicroBatch>& micro_batches = shards[rank].global_batches.emplace_back();
    for (const Span& span : spans) {
      MicroBatch& micro_batch = micro_batches.emplace_back();
      micro_batch.length = span.width;
      for (int64_t i = span.begin; i < span.end; ++i) micro_batch.rows.push_back(sorted[i * options.shards + rank]);
    }
  }
}

// Packs dealt over the ranks in the packer's order; a rank's packs may then be sorted.
void add_packed(std::span<const int64_t> lengths, int64_t begin, int64_t count, const ShardOptions& options,
                std::vector<Shard>& shards) {
  const SequencePacking& packing = *options.packing;
  std::vector<int64_t> padded(count);
  for (int64_t i = 0; i < count; ++i) {
    padded[i] = round_up(lengths[begin + i], packing.sequence_length_pad_multiple);
  }
  const PackingLimits limits{.min_bin_count = options.shards, .bin_count_multiple = options.shards};
  const Bins bins =
      pack(packing.algorithm, padded, packing.max_tokens_per_microbatch, limits, packing.shuffle_seed + begin);
  for (Shard& shard : shards) shard.global_batches.emplace_back();
  for (size_t bin = 0; bin < bins.size(); ++bin) {
    MicroBatch& micro_batch = shards[bin % options.shards].global_batches.back().emplace_back();
    for (int64_t index : bins[bin]) {
      micro_batch.rows.push_back(begin + index);
      micro_batch.length += padded[index];
    }
  }
  if (packing.order == MicroBatchOrder::packer) return;
  for (Shard& shard : shards) {
    std::vector<MicroBatch>& packs = shard.global_batches.back();
    std::stable_sort(packs.begin(), packs.end(),
                     [](const MicroBatch& a, const MicroBatch& b) { return a.length > b.length; });
  }
}

}  // namespace

MicroBatchOrder micro_batch_order_named(std::string_view name) {
  if (name == "packer") return MicroBatchOrder::packer;
  if (name == "largest_first") return MicroBatchOrder::largest_first;
  fail(ErrorKind::config, "sequence packing: microbatch_order must be 'packer' or 'largest_first', got '{}'", name);
}

std::vector<int64_t> Shard::rows() const {
  std::vector<int64_t> result;
  for (const auto& micro_batches : global_batches) {
    for (const MicroBatch& part : micro_batches) result.insert(result.end(), part.rows.begin(), part.rows.end());
  }
  return result;
}

Sharding shard(std::span<const int64_t> lengths, const ShardOptions& options) {
  const int64_t total = static_cast<int64_t>(lengths.size());
  const int64_t batch_size = options.batch_size.value_or(total);
  check_options(total, batch_size, options);
  Sharding result;
  result.shards.resize(options.shards);
  for (int64_t begin = 0; begin < total; begin += batch_size) {
    if (options.dynamic) {
      add_dynamic(lengths, begin, batch_size, options, result.shards);
    } else if (options.packing) {
      add_packed(lengths, begin, batch_size, options, result.shards);
    } else {
      add_plain(lengths, begin, batch_size, options, result.shards);
    }
  }
  for (const Shard& share : result.shards) {
    const std::vector<int64_t> rows = share.rows();
    result.order.insert(result.order.end(), rows.begin(), rows.end());
  }
  result.inverse = inverse_permutation(result.order);
  return result;
}

std::vector<std::vector<int64_t>> split_rows(std::span<const int64_t> rows, int64_t micro_batch_size) {
  const int64_t count = static_cast<int64_t>(rows.size());
  if (micro_batch_size < 1 || count % micro_batch_size != 0) {
    fail(ErrorKind::data, "{} rows are not a multiple of the micro-batch size {}", count, micro_batch_size);
  }
  std::vector<std::vector<int64_t>> parts;
  for (int64_t i = 0; i < count; i += micro_batch_size) {
    parts.emplace_back(rows.begin() + i, rows.begin() + i + micro_batch_size);
  }
  return parts;
}

Batch chunk(const Batch& batch, int64_t index, int64_t parts) {
  if (parts < 1 || batch.size() % parts != 0) {
    fail(ErrorKind::data, "batch: {} rows do not divide into {} parts", batch.size(), parts);
  }
  const int64_t share = batch.size() / parts;
  if (index < 0 || index >= parts) fail(ErrorKind::data, "batch: no part {} of {}", index, parts);
  return batch.slice(index * share, (index + 1) * share);
}

}  // namespace hexad::data
