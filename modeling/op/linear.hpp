// Matrix products of the transformer.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/op/fp8/fp8.hpp"

namespace hexad::modeling {

class Fp8Casts;

// How linears are run.
struct LinearOptions {
  LinearOptions(int64_t tile = 0) : row_tile(tile) {}

  // n > 0: GEMMs of exactly n rows, so that a row's result does not depend on T; never in FP8.
  int64_t row_tile;
  // Products in FP8 where sizes fit (fp8_linear.hpp), in the weights' own type elsewhere.
  Fp8 fp8 = Fp8::off;
  Fp8Casts* fp8_casts =
      nullptr;  // where weights in FP8 stay (fp8_casts.hpp), as long as the graph; null: cast every time
  // On a GPU in bf16: a row's result has the same bits whatever T is, in training and in generation; the backward pass
  // is the usual one. Never in FP8.
  bool batch_invariant = false;
};

// x [T, in], weight [out, in], bias [out] or undefined -> [T, out].
//
// The gradient of a weight that is a leaf with an fp32 grad() is added to it there, in place, and autograd gets none: a
// backend puts its accumulator into that slot before the backward pass (Megatron-Core's main_grad).
at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                        const LinearOptions& options = {});

// One to three such products of one x. On a GPU, weights that lie side by side are one GEMM, whose columns are the
// results (rows then have a stride), and so are their gradients.
std::vector<at::Tensor> apply_linears(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                      const std::vector<at::Tensor>& biases, const LinearOptions& options = {});

// f(x), x [T, ...] -> [T, ...]; with row_tile n > 0 of tiles of exactly n rows, the last one filled up with zeros.
at::Tensor by_row_tiles(const at::Tensor& x, int64_t row_tile, const std::function<at::Tensor(const at::Tensor&)>& f);

// Where the gradient of `weight` is to be added in place; undefined when it is autograd's to hand over.
at::Tensor grad_sum_of(const at::Tensor& weight);

// sum += g^T x, of g [T, N] and x [T, K]; sum is fp32 [N, K], or [P, N / P, K] whose P parts lie anywhere.
void accumulate_product(const at::Tensor& sum, const at::Tensor& g, const at::Tensor& x);

// Matrices carry their sums in grad() while this lives, and the products above add to them in place.
class OfferedSums {
 public:
  OfferedSums() = default;
  ~OfferedSums() {
    for (at::Tensor& leaf : leaves_) leaf.mutable_grad() = at::Tensor();
  }
  OfferedSums(const OfferedSums&) = delete;

  // leaf: a matrix; sum: fp32, see grad_sum_of().
  void offer(at::Tensor leaf, at::Tensor sum) {
    leaves_.push_back(std::move(leaf));
    leaves_.back().mutable_grad() = std::move(sum);
  }

 private:
  std::vector<at::Tensor> leaves_;
};

}  // namespace hexad::modeling
