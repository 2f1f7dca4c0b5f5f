// How parameters and their gradients lie in contiguous buffers, and how the buffers are cut into buckets that are
// reduced and gathered one by one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/range.hpp"

namespace hexad::modeling::layout {

struct BufferParam {
  int64_t numel = 0;
  std::string dtype = "bf16";     // of the parameter: "bf16", "f16", "f32"
  bool expert = false;            // reduced over the expert data-parallel group
  bool shared_embedding = false;  // tied: gets a bucket of its own under the distributed optimizer
  std::string unit = {};          // what is gathered and freed together; buckets keep to it where the options say so
};

struct BufferSlot {
  size_t param = 0;    // index into the list of parameters
  model::Range range;  // elements of the buffer
  size_t bucket = 0;
};

struct Bucket {
  model::Range range;    // elements of the buffer, with the padding behind
  int64_t unpadded = 0;  // elements up to the end of the last parameter, alignment gaps included
};

struct BufferLayout {
  std::string param_dtype, grad_dtype;
  bool expert = false;
  int64_t shards = 1;  // ranks that share every bucket equally; 1 without the distributed optimizer
  // By offset: the reverse of the model's order, in which backward completes gradients.
  std::vector<BufferSlot> slots;
  std::vector<Bucket> buckets;
  int64_t numel() const { return buckets.empty() ? 0 : buckets.back().range.end; }
};

struct BufferOptions {
  std::optional<int64_t> bucket_size = {};  // elements after which a bucket closes; absent: one bucket
  bool bucket_per_unit = false;             // one bucket for each unit, whatever its size
  int64_t data_parallel = 1;                // ranks that shard dense parameters: DP x CP / optimizer instances
  int64_t expert_data_parallel = 1;         // likewise expert ones: EDP / optimizer instances
  bool distributed_optimizer = true;
  bool grad_reduce_in_fp32 = true;
  bool pad_for_high_bandwidth = false;  // pad_buckets_for_high_nccl_busbw: buckets of multiples of 2^16 elements
  // Plain buffers too: their parameters begin, and buckets end, at multiples of 64 elements, where kernels read and
  // write whole words. (Megatron-Core leaves no gaps there.)
  bool align_plain = false;
};

// One buffer for every (parameter dtype, gradient dtype, expert or not), in the order in which the list meets them
// (Megatron-Core param_and_grad_buffer.py:group_params_for_buffers). Throws Error for negative sizes and counts below
// 1.
std::vector<BufferLayout> buffer_layouts(const std::vector<BufferParam>& params, const BufferOptions& options);

// The elements after which a bucket closes when a config leaves it open (distributed_data_parallel.py): max(40e6, 1e6
// ranks) with overlapped reduction on the first pipeline stage, else absent: other stages reduce in their bubble.
std::optional<int64_t> default_bucket_size(int64_t data_parallel, bool overlap_grad_reduce, int64_t pipeline_rank);

// The layout of parameters that share one buffer, `members` by index into `params`, in model order.
//   sharded: parameters begin at multiples of 64 elements, buckets end at multiples of lcm(shards, 128) (and 2^16), a
//   shared embedding is alone in its bucket (distrib_optimizer.py:_compute_per_buffer_param_layout);
//   by unit: a bucket ends where the parameters' unit does (Megatron-FSDP), and bucket_size means nothing;
//   plain: no gaps (param_and_grad_buffer.py:_compute_default_per_buffer_param_layout), unless aligned.
BufferLayout sharded_buffer(const std::vector<BufferParam>& params, const std::vector<size_t>& members,
                            std::optional<int64_t> bucket_size, int64_t shards, bool pad_for_high_bandwidth = false,
                            bool bucket_per_unit = false);
BufferLayout plain_buffer(const std::vector<BufferParam>& params, const std::vector<size_t>& members,
                          std::optional<int64_t> bucket_size, bool aligned = false);

// What a data-parallel rank owns, an equal part of every bucket, has of one parameter: in four frames.
struct ParamShard {
  size_t param = 0;
  model::Range in_buffer, in_bucket;
  model::Range in_shard;  // of this rank's part of the bucket
  model::Range in_param;
};

// The part of bucket `bucket` that rank `rank` of layout.shards reduces, updates and gathers from. Throws Error for a
// bucket or rank that does not exist.
model::Range shard_range(const BufferLayout& layout, size_t bucket, int64_t rank);

// The parameters in it, by offset; a rank may own none (distrib_optimizer.py:_build_model_gbuf_range).
std::vector<ParamShard> param_shards(const BufferLayout& layout, size_t bucket, int64_t rank);

}  // namespace hexad::modeling::layout
