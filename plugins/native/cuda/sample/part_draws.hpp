// Draws of a pass whose logits lie on several ranks by columns: kernels and exchanges in order, as a CUDA graph holds
// them. The ranks exchange 24 bytes a draw, not rows of logits.
#pragma once
#include <ATen/core/Tensor.h>

#include "plugins/native/cuda/sample/sample_parts.hpp"
#include "plugins/native/parallel/replica.hpp"

namespace hexad::native::cuda {

class PartDraws {
 public:
  // For at most `draws` of them; `vocabulary` columns are shared as torch.chunk cuts them.
  PartDraws(const Replica& replica, int64_t vocabulary, int64_t draws, at::Device device);

  // logits: fp32 [rows, this rank's columns], contiguous. Every rank gets the tokens and log-probs of all tasks
  // [count].
  void draw(const at::Tensor& logits, const DrawTask* tasks, int32_t* tokens, float* logprobs, int64_t count,
            cudaStream_t stream) const;

 private:
  Replica replica_;
  modeling::Range columns_;
  at::Tensor own_, all_;  // fp64 [draws * 2], [ranks * draws * 2]: PartSum
  at::Tensor drawn_;      // int64 [draws]: number_of()
};

}  // namespace hexad::native::cuda
