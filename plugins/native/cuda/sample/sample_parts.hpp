// Draws from rows of logits whose columns lie on several ranks, as sample/part_sampler.hpp has them: the same steps on
// the GPU, with an exchange after the first and after the second. Unfiltered draws alone.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/native/cuda/sample/sample.hpp"
#include "plugins/native/sample/part_sampler.hpp"

namespace hexad::native::cuda {

// fp32 [rows, columns] of this rank; `first`: of its columns in a whole row. There may be none.
struct PartLogits {
  const float* logits;
  int columns, first;
};

// sums [count], one for each task; of a task without a row they are left as they are.
void sum_parts(const PartLogits& part, const DrawTask* tasks, PartSum* sums, int count, cudaStream_t stream);

// sums [parts, count], of all ranks. drawn [count]: number_of() the draw where it falls in this part, 0 where not.
void draw_in_part(const PartLogits& logits, const DrawTask* tasks, const PartSum* sums, int part, int parts,
                  int64_t* drawn, int count, cudaStream_t stream);

// The largest of all ranks' numbers as sample() gives draws.
void take_draws(const int64_t* drawn, const DrawTask* tasks, int32_t* tokens, float* logprobs, int count,
                cudaStream_t stream);

}  // namespace hexad::native::cuda
