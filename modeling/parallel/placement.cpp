#include "modeling/parallel/placement.hpp"

#include <ATen/Functions.h>
#include <fmt/ranges.h>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

using Kind = Placement::Kind;

// Zero-pads dimension `dim` to `length`.
at::Tensor pad(const at::Tensor& tensor, int64_t dim, int64_t length) {
  if (tensor.size(dim) == length) return tensor;
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[static_cast<size_t>(dim)] = length;
  at::Tensor padded = at::zeros(shape, tensor.options());
  padded.narrow(dim, 0, tensor.size(dim)).copy_(tensor);
  return padded;
}

at::Tensor gather_shards(const at::Tensor& local, int64_t dim, int64_t length, const Group& group) {
  // Collectives concatenate in front, so the sharded dimension goes there for the transport.
  const at::Tensor part = pad(local.movedim(dim, 0), 0, chunk_length(length, group.size())).contiguous();
  std::vector<int64_t> shape = part.sizes().vec();
  shape[0] *= group.size();
  at::Tensor whole = at::empty(shape, part.options());
  group.all_gather(whole, part).wait();
  return whole.narrow(0, 0, length).movedim(0, dim).contiguous();
}

at::Tensor scatter_sum(const at::Tensor& local, int64_t dim, const Group& group) {
  const int64_t length = local.size(dim), chunk = chunk_length(length, group.size());
  const at::Tensor whole = pad(local.movedim(dim, 0), 0, chunk * group.size()).contiguous();
  std::vector<int64_t> shape = whole.sizes().vec();
  shape[0] = chunk;
  at::Tensor part = at::empty(shape, whole.options());
  group.reduce_scatter(part, whole).wait();
  const Range mine = chunk_range(length, group.size(), group.rank());
  return part.narrow(0, 0, mine.size()).movedim(0, dim).contiguous();
}

at::Tensor take_shard(const at::Tensor& whole, int64_t dim, const Group& group) {
  const Range mine = chunk_range(whole.size(dim), group.size(), group.rank());
  return whole.narrow(dim, mine.begin, mine.size()).contiguous();
}

at::Tensor to_replicate(const at::Tensor& local, const std::vector<int64_t>& shape, const Placement& from,
                        const Group& group) {
  if (from.kind == Kind::replicate) return local;
  if (from.kind == Kind::shard) return gather_shards(local, from.dim, shape[static_cast<size_t>(from.dim)], group);
  at::Tensor sum = local.clone(at::MemoryFormat::Contiguous);
  group.all_reduce(sum).wait();
  return sum;
}

}  // namespace

int64_t chunk_length(int64_t length, int64_t ranks) { return (length + ranks - 1) / ranks; }

Range chunk_range(int64_t length, int64_t ranks, int64_t rank) {
  const int64_t chunk = chunk_length(length, ranks);
  return {std::min(rank * chunk, length), std::min((rank + 1) * chunk, length)};
}

std::vector<int64_t> local_shape(std::vector<int64_t> shape, const Placement& placement, int64_t ranks, int64_t rank) {
  if (placement.kind == Kind::shard) {
    int64_t& length = shape.at(static_cast<size_t>(placement.dim));
    length = chunk_range(length, ranks, rank).size();
  }
  return shape;
}

at::Tensor redistribute(const at::Tensor& local, const std::vector<int64_t>& shape, const Placement& from,
                        const Placement& to, const Group& group) {
  const std::vector<int64_t> expected = local_shape(shape, from, group.size(), group.rank());
  if (local.sizes() != at::IntArrayRef(expected)) {
    fail("redistribute: rank {} of {} has a part of shape [{}], wanted [{}]", group.rank(), group.size(),
         fmt::join(local.sizes(), ", "), fmt::join(expected, ", "));
  }
  if (from == to || group.size() == 1) return local;
  if (from.kind == Kind::partial && to.kind == Kind::shard) return scatter_sum(local, to.dim, group);
  const at::Tensor whole = to_replicate(local, shape, from, group);
  if (to.kind == Kind::replicate) return whole;
  if (to.kind == Kind::shard) return take_shard(whole, to.dim, group);
  return group.rank() == 0 ? whole : at::zeros_like(whole);
}

}  // namespace hexad::modeling
