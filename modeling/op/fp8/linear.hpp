// Linears in FP8, forward and backward: y = x W^T, dx = dy W, dW = dy^T x. What is kept for the backward pass is x in
// FP8, transposed, in place of x.
//
// Scales are by tensor (fp8.hpp) or by strips and blocks (fp8_blocks.hpp). The weights of one input are one tensor, and
// so are the gradients of their outputs: results are the same, whether weights lie side by side or apart. A scale
// covers all tokens at hand, or 128 that follow each other: results depend, in the last bits that FP8 holds, on which
// tokens share a micro-batch and, under tensor parallelism, on how weights are cut.
//
// Weights are cast where they are used, for full weights come and go under FSDP: forward they are read twice (by blocks
// once) and written once (5 bytes a 16-bit weight), backward read and written transposed once, with the scale from
// before (3 bytes). With an Fp8Casts that is done once for all micro-batches of a call, as far as memory goes.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/op/fp8/casts.hpp"

namespace hexad::modeling {

// Whether x [T, K] and weights [N_i, K] can be: T > 0, K and every N_i multiples of 16, fp32 or 16 bits. The others
// stay in their own type.
bool fits_fp8(const at::Tensor& x, const std::vector<at::Tensor>& weights);

// apply_linears (linear.hpp) in FP8, with its in-place weight gradients; x and weights fit.
std::vector<at::Tensor> fp8_linears(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                    const std::vector<at::Tensor>& biases, Fp8 fp8, Fp8Casts* casts = nullptr);

// x [T, K] and weights [N_i, K] as the recipe scales them; `range`: as in to_fp8 (fp8.hpp), for tensorwise alone. With
// `casts` the copies of weights are rows or columns, and may be those from before.
Fp8Tensor fp8_input(const at::Tensor& x, Fp8 fp8, Fp8Copies copies);
Fp8Tensor fp8_weights(const std::vector<at::Tensor>& weights, Fp8 fp8, Fp8Copies copies, const Fp8Range& range = {},
                      Fp8Casts* casts = nullptr);

// The gradients of linears, for operators that make their own backward pass of them: grads [T, N_i] of the outputs.
class Fp8Gradients {
 public:
  Fp8Gradients(const std::vector<at::Tensor>& grads, Fp8 fp8, Fp8Copies copies = Fp8Copies::both);

  // [T, K]; needs the rows. `range`: of the weights, where it is known, which the tensorwise recipe then does not seek.
  at::Tensor of_input(const std::vector<at::Tensor>& weights, const Fp8Range& range = {},
                      Fp8Casts* casts = nullptr) const;
  // Of each weight, in its type; undefined where it has been added to grad() or is not wanted. Needs the columns; x:
  // the columns of the input.
  std::vector<at::Tensor> of_weights(const Fp8Matrix& x, const std::vector<at::Tensor>& weights) const;

 private:
  Fp8 fp8_;
  Fp8Tensor grads_;
  at::ScalarType type_;
};

}  // namespace hexad::modeling
