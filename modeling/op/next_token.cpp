#include "modeling/op/next_token.hpp"

#include <ATen/Functions.h>

#include <vector>

#include "modeling/op/host_copy.hpp"

namespace hexad::modeling {

at::Tensor next_token_targets(const at::Tensor& ids, const at::Tensor& cu_seqlens) {
  at::Tensor targets = at::full_like(ids, -1);
  if (ids.numel() > 1) targets.slice(0, 0, -1).copy_(ids.slice(0, 1));
  const at::Tensor host = cu_seqlens.to(at::TensorOptions(at::kCPU).dtype(at::kLong)).contiguous();
  const int64_t* offsets = host.const_data_ptr<int64_t>();
  std::vector<int64_t> last;
  for (int64_t i = 1; i < host.numel(); ++i) {
    if (offsets[i] > offsets[i - 1]) last.push_back(offsets[i] - 1);
  }
  return targets.index_fill_(0, on_device(last, ids.device()), -1);
}

at::Tensor at_predicted_token(const at::Tensor& values) { return values.roll(1, 0); }

}  // namespace hexad::modeling
