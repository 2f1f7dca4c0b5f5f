#include "modeling/layout/buffer_shards.hpp"

#include <algorithm>

#include "modeling/error.hpp"

namespace hexad::modeling::layout {
namespace {

model::Range moved(model::Range range, int64_t offset) { return {range.begin - offset, range.end - offset}; }

}  // namespace

model::Range shard_range(const BufferLayout& layout, size_t bucket, int64_t rank) {
  if (bucket >= layout.buckets.size()) {
    fail("gradient buffer: bucket {} of a buffer with {}", bucket, layout.buckets.size());
  }
  if (rank < 0 || rank >= layout.shards) {
    fail("gradient buffer: rank {} is outside the {} that share it", rank, layout.shards);
  }
  const model::Range& range = layout.buckets[bucket].range;
  const int64_t size = range.size() / layout.shards;
  return {range.begin + rank * size, range.begin + (rank + 1) * size};
}

std::vector<ParamShard> param_shards(const BufferLayout& layout, size_t bucket, int64_t rank) {
  const model::Range own = shard_range(layout, bucket, rank);
  std::vector<ParamShard> shards;
  for (const BufferSlot& slot : layout.slots) {
    const model::Range part = {std::max(slot.range.begin, own.begin), std::min(slot.range.end, own.end)};
    if (part.size() <= 0) continue;
    shards.push_back({slot.param, part, moved(part, layout.buckets[bucket].range.begin), moved(part, own.begin),
                      moved(part, slot.range.begin)});
  }
  return shards;
}

}  // namespace hexad::modeling::layout
