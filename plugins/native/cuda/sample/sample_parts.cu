#include "plugins/native/cuda/sample/sample_parts.hpp"

#include "plugins/native/cuda/check.hpp"
#include "plugins/native/cuda/sample/sample_walk.cuh"

namespace hexad::native::cuda {
namespace {

__device__ float scale_of(const DrawTask& task) { return task.temperature == 0 ? 1.0f : float(1.0 / task.temperature); }

__global__ void __launch_bounds__(kThreads) sum_kernel(PartLogits part, const DrawTask* tasks, PartSum* sums) {
  __shared__ Segments segments;
  const DrawTask task = tasks[blockIdx.x];
  if (task.row < 0) return;
  const Row row{part.logits + int64_t(task.row) * part.columns, part.columns};
  const float scale = scale_of(task);
  const bool sound = summarize(row, scale, /*sums=*/true, segments);
  if (threadIdx.x >= 32) return;
  const float largest = largest_of(row, segments);
  const double total = walk(segments, row.segments(), largest, scale, Kept{}, /*relative=*/true, 0, -1).before;
  if (threadIdx.x == 0) sums[blockIdx.x] = {sound ? double(largest) : double(NAN), total};
}

// sample/part_sampler.cpp: find_part. sums [parts, draws]; the same bits on every rank.
__device__ PartDraw find_part(const PartSum* sums, int parts, int draws, int draw, const DrawTask& task) {
  PartDraw found;
  found.largest = -INFINITY;
  for (int i = 0; i < parts; ++i) {
    const double largest = sums[int64_t(i) * draws + draw].largest;
    if (largest != largest) return {};
    found.largest = fmax(found.largest, largest);
  }
  if (!(fabs(found.largest) < INFINITY)) return {};
  const double scale = double(scale_of(task));
  const auto factor = [&](const PartSum& part) {
    return part.sum > 0 ? exp((part.largest - found.largest) * scale) : 0.0;
  };
  for (int i = 0; i < parts; ++i) {
    const PartSum part = sums[int64_t(i) * draws + draw];
    found.total += part.sum * factor(part);
  }
  const bool greedy = task.temperature == 0;
  double before = 0;
  for (int i = 0; i < parts; ++i) {
    const PartSum part = sums[int64_t(i) * draws + draw];
    const double share = factor(part), here = part.sum * share, rest = fmax(0.0, task.u * found.total - before);
    before += here;
    if (greedy ? part.largest != found.largest : !(here > 0)) continue;
    found.part = i;
    if (greedy) break;
    found.rest = rest / share;
    if (rest < here) break;
  }
  return found;
}

__global__ void __launch_bounds__(kThreads)
    draw_kernel(PartLogits logits, const DrawTask* tasks, const PartSum* sums, int part, int parts, int64_t* drawn) {
  __shared__ Segments segments;
  const DrawTask task = tasks[blockIdx.x];
  PartDraw found;
  if (task.row >= 0) found = find_part(sums, parts, int(gridDim.x), int(blockIdx.x), task);
  if (found.part != part) {  // all threads alike
    if (threadIdx.x == 0) drawn[blockIdx.x] = 0;
    return;
  }
  const Row row{logits.logits + int64_t(task.row) * logits.columns, logits.columns};
  const float scale = scale_of(task);
  summarize(row, scale, /*sums=*/true, segments);
  if (threadIdx.x >= 32) return;
  const float largest = largest_of(row, segments);
  int column;
  if (task.temperature == 0) {
    column = first_largest(row, segments, largest);
  } else {
    const Kept all{};
    const Place place = walk(segments, row.segments(), largest, scale, all, /*relative=*/true, 0, found.rest);
    column = walk_segment(row, place, largest, scale, all, found.rest);
  }
  if (threadIdx.x != 0) return;
  int64_t number = 0;
  if (column >= 0) {
    const double above = double(row.logits[column]) - found.largest;
    const float logprob = float(above * double(scale) - log(found.total));
    number = int64_t(logits.first + column + 1) << 32 | int64_t(__float_as_uint(logprob));
  }
  drawn[blockIdx.x] = number;
}

__global__ void take_kernel(const int64_t* drawn, const DrawTask* tasks, int32_t* tokens, float* logprobs, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count || tasks[i].row < 0) return;
  tokens[i] = int32_t(drawn[i] >> 32) - 1, logprobs[i] = __uint_as_float(uint32_t(drawn[i]));
}

}  // namespace

void sum_parts(const PartLogits& part, const DrawTask* tasks, PartSum* sums, int count, cudaStream_t stream) {
  if (count == 0) return;
  sum_kernel<<<unsigned(count), kThreads, 0, stream>>>(part, tasks, sums);
  check(cudaGetLastError(), "sums of a part of the logits");
}

void draw_in_part(const PartLogits& logits, const DrawTask* tasks, const PartSum* sums, int part, int parts,
                  int64_t* drawn, int count, cudaStream_t stream) {
  if (count == 0) return;
  draw_kernel<<<unsigned(count), kThreads, 0, stream>>>(logits, tasks, sums, part, parts, drawn);
  check(cudaGetLastError(), "draws in a part of the logits");
}

void take_draws(const int64_t* drawn, const DrawTask* tasks, int32_t* tokens, float* logprobs, int count,
                cudaStream_t stream) {
  if (count == 0) return;
  constexpr int kBlock = 128;
  take_kernel<<<unsigned((count + kBlock - 1) / kBlock), kBlock, 0, stream>>>(drawn, tasks, tokens, logprobs, count);
  check(cudaGetLastError(), "draws of all parts");
}

}  // namespace hexad::native::cuda
