#include "modeling/layout/buffer_layout.hpp"

#include <algorithm>
#include <numeric>

#include "modeling/error.hpp"

namespace hexad::modeling::layout {
namespace {

constexpr int64_t kParamAlignment = 64, kBucketAlignment = 128, kHighBandwidth = 1 << 16;

int64_t rounded_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Places parameters one after another and closes buckets.
class BufferBuilder {
 public:
  explicit BufferBuilder(int64_t bucket_alignment) : alignment_(bucket_alignment) {}

  int64_t bucket_numel() const { return end_ - bucket_begin_; }
  bool bucket_empty() const { return open_ == 0; }

  void align(int64_t multiple) { end_ = rounded_up(end_, multiple); }
  void place(size_t param, int64_t numel) {
    layout_.slots.push_back({param, {end_, end_ + numel}, layout_.buckets.size()});
    end_ += numel;
    ++open_;
  }
  void close() {
    const int64_t unpadded = bucket_numel();
    align(alignment_);
    layout_.buckets.push_back({{bucket_begin_, end_}, unpadded});
    bucket_begin_ = end_;
    open_ = 0;
  }
  BufferLayout take() {
    if (open_ > 0) close();
    return std::move(layout_);
  }

 private:
  const int64_t alignment_;
  BufferLayout layout_;
  int64_t end_ = 0, bucket_begin_ = 0;
  size_t open_ = 0;  // parameters in the bucket under construction
};

void check_members(const std::vector<BufferParam>& params, const std::vector<size_t>& members,
                   std::optional<int64_t> bucket_size) {
  if (bucket_size && *bucket_size < 1) {
    fail("gradient buffer: bucket size is {} elements, want at least 1; leave it out for one bucket", *bucket_size);
  }
  for (const size_t member : members) {
    if (params.at(member).numel < 0) {
      fail("gradient buffer: parameter {} has {} elements, want 0 or more", member, params[member].numel);
    }
  }
}

model::Range moved(model::Range range, int64_t offset) { return {range.begin - offset, range.end - offset}; }

}  // namespace

BufferLayout sharded_buffer(const std::vector<BufferParam>& params, const std::vector<size_t>& members,
                            std::optional<int64_t> bucket_size, int64_t shards, bool pad_for_high_bandwidth,
                            bool bucket_per_unit) {
  check_members(params, members, bucket_size);
  if (shards < 1) fail("gradient buffer: {} data-parallel ranks, want at least 1", shards);
  int64_t alignment = std::lcm(shards, kBucketAlignment);
  if (pad_for_high_bandwidth) alignment = std::lcm(alignment, kHighBandwidth);
  BufferBuilder builder(alignment);
  if (bucket_per_unit) bucket_size.reset();
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    const BufferParam& param = params[*member];
    builder.align(kParamAlignment);
    const bool next_unit =
        bucket_per_unit && member != members.rbegin() && params[*std::prev(member)].unit != param.unit;
    if ((param.shared_embedding || next_unit) && !builder.bucket_empty()) builder.close();
    builder.place(*member, param.numel);
    if (param.shared_embedding || (bucket_size && builder.bucket_numel() >= *bucket_size)) builder.close();
  }
  BufferLayout layout = builder.take();
  layout.shards = shards;
  return layout;
}

BufferLayout plain_buffer(const std::vector<BufferParam>& params, const std::vector<size_t>& members,
                          std::optional<int64_t> bucket_size, bool aligned) {
  check_members(params, members, bucket_size);
  const int64_t alignment = aligned ? kParamAlignment : 1;
  BufferBuilder builder(alignment);
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    builder.align(alignment);
    builder.place(*member, params[*member].numel);
    if (bucket_size && builder.bucket_numel() >= *bucket_size) builder.close();
  }
  return builder.take();
}

std::vector<BufferLayout> buffer_layouts(const std::vector<BufferParam>& params, const BufferOptions& options) {
  struct Key {
    std::string dtype, grad_dtype;
    bool expert;
    bool operator==(const Key&) const = default;
  };
  std::vector<Key> keys;
  std::vector<std::vector<size_t>> members;
  for (size_t i = 0; i < params.size(); ++i) {
    const Key key{params[i].dtype, options.grad_reduce_in_fp32 ? "f32" : params[i].dtype, params[i].expert};
    const size_t at = std::find(keys.begin(), keys.end(), key) - keys.begin();
    if (at == keys.size()) {
      keys.push_back(key);
      members.emplace_back();
    }
    members[at].push_back(i);
  }
  std::vector<BufferLayout> layouts;
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t shards = keys[i].expert ? options.expert_data_parallel : options.data_parallel;
    BufferLayout layout = options.distributed_optimizer
                              ? sharded_buffer(params, members[i], options.bucket_size, shards,
                                               options.pad_for_high_bandwidth, options.bucket_per_unit)
                              : plain_buffer(params, members[i], options.bucket_size, options.align_plain);
    layout.param_dtype = keys[i].dtype;
    layout.grad_dtype = keys[i].grad_dtype;
    layout.expert = keys[i].expert;
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

std::optional<int64_t> default_bucket_size(int64_t data_parallel, bool overlap_grad_reduce, int64_t pipeline_rank) {
  if (!overlap_grad_reduce || pipeline_rank > 0) return {};
  return std::max<int64_t>(40'000'000, 1'000'000 * data_parallel);
}

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
