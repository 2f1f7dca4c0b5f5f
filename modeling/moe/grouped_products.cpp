#include "modeling/moe/grouped_products.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::modeling {
namespace {

// Each expert's weight, of [E, out, in].
bool experts_aligned(const at::Tensor& x) {
  return is_aligned(x.const_data_ptr()) && x.stride(0) * x.element_size() % 16 == 0;
}

// [E, 1, 1]: has the expert no rows?
at::Tensor without_rows(const at::Tensor& ends) {
  const at::Tensor none = at::zeros({1}, ends.options());
  return at::diff(ends, 1, 0, none).eq(0).view({-1, 1, 1});
}

// Where the gradients of all of them are to be added; empty unless each has such a place.
std::vector<at::Tensor> sums_of(const std::vector<at::Tensor>& weights) {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& weight : weights) {
    sums.push_back(grad_sum_of(weight));
    if (!sums.back().defined()) return {};
  }
  return sums;
}

// Products [E, out, in] go to the sums, or are returned as they are.
std::vector<at::Tensor> hand_over(const at::Tensor& products, const std::vector<at::Tensor>& weights,
                                  const std::vector<at::Tensor>& sums, const at::Tensor& ends) {
  std::vector<at::Tensor> result(weights.size());
  if (!sums.empty() && cuda::add_products(sums, products, ends)) return result;
  at::Tensor cleared = products;
  cleared.masked_fill_(without_rows(ends), 0);
  for (size_t e = 0; e < weights.size(); ++e) {
    const at::Tensor product = cleared.select(0, static_cast<int64_t>(e));
    if (!sums.empty()) {
      sums[e].add_(product.view_as(sums[e]));
    } else if (weights[e].requires_grad()) {
      result[e] = product;
    }
  }
  return result;
}

}  // namespace

at::Tensor stacked(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second) {
  const at::NoGradGuard no_grad;
  const at::Tensor a = at_one_distance(first);
  if (second.empty()) return a.defined() && experts_aligned(a) ? a : at::stack(first);
  const at::Tensor b = at_one_distance(second);
  const bool adjoin = a.defined() && b.defined() && a.stride(0) == b.stride(0) && experts_aligned(a) &&
                      adjacent({first[0], second[0]}, 0).defined();
  if (!adjoin) return at::cat({at::stack(first), at::stack(second)}, 1);
  return a.as_strided({a.size(0), 2 * a.size(1), a.size(2)}, a.strides());
}

bool fits_grouped_products(const at::Tensor& rows, const std::vector<at::Tensor>& weights) {
  if (!cuda::has_kernels(rows) || rows.scalar_type() != at::kBFloat16 || weights.size() >= 1024) return false;
  const auto fits = [](const at::Tensor& w) {
    return w.scalar_type() == at::kBFloat16 && w.size(0) % 8 == 0 && w.size(1) % 8 == 0;
  };
  return !weights.empty() && std::all_of(weights.begin(), weights.end(), fits);
}

at::Tensor grouped_product(const at::Tensor& x, const at::Tensor& weights, const at::Tensor& ends) {
  return at::_grouped_mm(aligned(x), weights.transpose(1, 2), ends);
}

at::Tensor grouped_input_gradient(const at::Tensor& grad, const at::Tensor& weights, const at::Tensor& ends) {
  return at::_grouped_mm(aligned(grad), weights, ends);
}

std::vector<at::Tensor> grouped_weight_gradients(const at::Tensor& grad_in, const at::Tensor& x_in,
                                                 const std::vector<std::vector<at::Tensor>>& weights,
                                                 const at::Tensor& ends) {
  const at::NoGradGuard no_grad;
  const at::Tensor grad = aligned(grad_in), x = aligned(x_in);
  std::vector<at::Tensor> result;
  at::Tensor products;  // [E, columns, in]
  int64_t column = 0;
  for (const std::vector<at::Tensor>& list : weights) {
    const int64_t columns = list.front().size(0);
    const std::vector<at::Tensor> sums = sums_of(list);
    if (sums.empty() || !cuda::add_grouped_gradient(sums, grad.narrow(1, column, columns), x, ends)) {
      if (!products.defined()) products = at::_grouped_mm(grad.t(), x, ends);
      const std::vector<at::Tensor> rest = hand_over(products.narrow(1, column, columns), list, sums, ends);
      result.insert(result.end(), rest.begin(), rest.end());
    } else {
      result.resize(result.size() + list.size());
    }
    column += columns;
  }
  return result;
}

}  // namespace hexad::modeling
