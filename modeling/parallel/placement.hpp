// How a tensor lies on the ranks of one mesh dimension, and how it gets from one placement to another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Half-open range of indices.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

struct Placement {
  enum class Kind { replicate, shard, partial };  // partial: every rank holds a summand
  Kind kind = Kind::replicate;
  int64_t dim = 0;  // of a shard

  static Placement replicate() { return {}; }
  static Placement shard(int64_t dim) { return {Kind::shard, dim}; }
  static Placement partial() { return {Kind::partial, 0}; }
  bool operator==(const Placement&) const = default;
};

// Rows of each rank when `length` is cut as torch.chunk cuts it: ceil(length / ranks) each, the last ones fewer or
// none.
int64_t chunk_length(int64_t length, int64_t ranks);
Range chunk_range(int64_t length, int64_t ranks, int64_t rank);

// Shape of this rank's part.
std::vector<int64_t> local_shape(std::vector<int64_t> shape, const Placement& placement, int64_t ranks, int64_t rank);

// This rank's part of a tensor of global `shape`, moved from one placement to another. Every rank of the group takes
// part. The result may share memory with `local` when nothing moves. Throws Error if `local` has not the shape that
// `from` gives this rank.
at::Tensor redistribute(const at::Tensor& local, const std::vector<int64_t>& shape, const Placement& from,
                        const Placement& to, const Group& group);

}  // namespace hexad::modeling
