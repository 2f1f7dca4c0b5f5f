#include "modeling/parallel/tensor/gather.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace hexad::modeling {
namespace {

int64_t elements_of(const WeightSlice& slice) {
  return std::accumulate(slice.shape.begin(), slice.shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

at::Tensor box_of(at::Tensor whole, const WeightSlice& slice) {
  for (size_t d = 0; d < slice.shape.size(); ++d)
    whole = whole.narrow(static_cast<int64_t>(d), slice.offsets[d], slice.shape[d]);
  return whole;
}

at::Tensor gather_parts(const ModelConfig& config, const WeightInfo& info, const at::Tensor& part, const Group& tp) {
  const at::NoGradGuard no_grad;
  if (part.sizes() == at::IntArrayRef(info.shape)) return part;
  std::vector<TensorPart> parts;
  int64_t largest = 0;  // parts of the vocabulary differ in size: each travels at the size of the largest
  for (int64_t rank = 0; rank < tp.size(); ++rank) {
    parts.push_back(tensor_part(config, info, rank, tp.size()));
    largest = std::max(largest, elements_of(parts.back().slice));
  }
  const at::Tensor mine = at::zeros({largest}, part.options());
  mine.narrow(0, 0, part.numel()).copy_(part.reshape({-1}));
  const at::Tensor all = at::empty({tp.size(), largest}, part.options());
  tp.all_gather(all, mine).wait();
  const at::Tensor whole = at::empty(info.shape, part.options());
  for (int64_t rank = 0; rank < tp.size(); ++rank) {
    const WeightSlice& slice = parts[static_cast<size_t>(rank)].slice;
    if (parts[static_cast<size_t>(rank)].copy == 0)
      box_of(whole, slice).copy_(all[rank].narrow(0, 0, elements_of(slice)).view(slice.shape));
  }
  return whole;
}

}  // namespace hexad::modeling
