// What one data-parallel rank owns of a buffer: an equal part of every bucket, whatever parameters it cuts.
#pragma once
#include <cstdint>
#include <vector>

#include "modeling/layout/buffer_layout.hpp"

namespace hexad::modeling::layout {

// The owned piece of one parameter, in four frames.
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
