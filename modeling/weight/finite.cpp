#include "modeling/weight/finite.hpp"

#include <ATen/Functions.h>

#include "modeling/error.hpp"

namespace hexad::modeling {

void require_finite(const at::Tensor& tensor, const std::string& name, const std::string& file) {
  // A sum is finite only if every element is (or would overflow: then look at the elements).
  if (at::isfinite(tensor.sum(at::kDouble)).item<bool>()) return;
  const at::Tensor bad = at::isfinite(tensor).logical_not().flatten().nonzero();
  if (bad.numel() == 0) return;
  const int64_t first = bad[0].item<int64_t>();
  fail("{}: '{}' holds {} values that are not finite; the first is {} at element {}", file, name, bad.size(0),
       tensor.flatten()[first].item<double>(), first);
}

}  // namespace hexad::modeling
