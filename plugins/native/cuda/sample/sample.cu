#include "plugins/native/cuda/check.hpp"
#include "plugins/native/cuda/sample/is_filtered.cuh"
#include "plugins/native/cuda/sample/sample_filter.cuh"
#include "plugins/native/cuda/sample/sample_walk.cuh"

namespace hexad::native::cuda {
namespace {

// Sums of what is kept, relative to the row's largest.
__device__ void summarize_kept(const Row& row, float largest, float scale, const Kept& kept, Segments& segments) {
  for (int s = threadIdx.x / 32; s < row.segments(); s += kWarps) {
    float sum = 0;
    int ties = 0;
    if (segments.largest[s] >= kept.least) {
      for (int j = 0; j < kSteps; ++j) {
        const float x = row.at(s, j);
        ties += x == kept.least && x > -INFINITY;
        if (x > kept.least) sum += expf((x - largest) * scale);
      }
    }
    sum = warp_sum(sum), ties = warp_sum(ties);
    if (threadIdx.x % 32 == 0) segments.sum[s] = sum, segments.ties[s] = ties;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    sample_kernel(const float* logits, int vocab, const DrawTask* tasks, int32_t* tokens, float* logprobs) {
  __shared__ Segments segments;
  __shared__ Selection selection;
  const DrawTask task = tasks[blockIdx.x];
  if (task.row < 0) return;
  const Row row{logits + int64_t(task.row) * vocab, vocab};
  const bool greedy = task.temperature == 0;
  const bool filtered = is_filtered(task, vocab);
  const float scale = greedy ? 1.0f : float(1.0 / task.temperature);
  const bool sound = summarize(row, scale, !filtered, segments);
  const float largest = largest_of(row, segments);
  int token = -1;
  float logprob = 0;
  if (sound && fabsf(largest) < INFINITY) {
    Kept kept;
    if (filtered) {
      kept = filter(row, task, largest, scale, selection);
      summarize_kept(row, largest, scale, kept, segments);
    }
    if (threadIdx.x < 32) {
      const float tie_weight = filtered && kept.least > -INFINITY ? expf((kept.least - largest) * scale) : 0.0f;
      const int count = row.segments();
      const double total = walk(segments, count, largest, scale, kept, !filtered, tie_weight, -1).before;
      if (greedy) {
        token = first_largest(row, segments, largest);
      } else {
        const double target = task.u * total;
        const Place place = walk(segments, count, largest, scale, kept, !filtered, tie_weight, target);
        token = walk_segment(row, place, largest, scale, kept, target);
      }
      if (token >= 0) logprob = float((double(row.logits[token]) - double(largest)) * double(scale) - log(total));
    }
  }
  if (threadIdx.x == 0) tokens[blockIdx.x] = token, logprobs[blockIdx.x] = logprob;
}

}  // namespace

void sample(const float* logits, int vocab, const DrawTask* tasks, int32_t* tokens, float* logprobs, int count,
            cudaStream_t stream) {
  if (count == 0) return;
  sample_kernel<<<unsigned(count), kThreads, 0, stream>>>(logits, vocab, tasks, tokens, logprobs);
  check(cudaGetLastError(), "sampling");
}

}  // namespace hexad::native::cuda
