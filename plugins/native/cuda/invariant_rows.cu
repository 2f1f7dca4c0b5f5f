#include "plugins/native/cuda/check.hpp"
#include "plugins/native/cuda/invariant_rows.hpp"
#include "plugins/native/cuda/sample/is_filtered.cuh"

namespace hexad::native::cuda {
namespace {

constexpr int kBlock = 256, kVector = 8;  // elements of 16 bytes

__global__ void __launch_bounds__(kBlock)
    gather_kernel(const uint4* table, const int32_t* rows, uint4* out, int64_t words, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * kBlock + threadIdx.x;
  if (i >= count) return;
  out[i] = table[rows[i / words] * words + i % words];
}

// A thread copies a word of a head of keys or values.
__global__ void __launch_bounds__(kBlock) append_kernel(const __nv_bfloat16* qkv, const int32_t* slots,
                                                        __nv_bfloat16* keys, __nv_bfloat16* values, QkvShape s) {
  const int words = s.dim / kVector, heads = 2 * s.kv_heads;
  const int64_t i = int64_t(blockIdx.x) * kBlock + threadIdx.x, row = i / (heads * words);
  if (row >= s.rows) return;
  const int slot = slots[row];
  if (slot < 0) return;
  const int head = int(i / words % heads), word = int(i % words), kv_head = head % s.kv_heads;
  const int64_t place = (int64_t(slot / s.block_size) * s.kv_heads + kv_head) * s.block_size + slot % s.block_size;
  const __nv_bfloat16* from = qkv + (row * (s.heads + heads) + s.heads + head) * s.dim;
  __nv_bfloat16* to = (head < s.kv_heads ? keys : values) + place * s.dim;
  reinterpret_cast<uint4*>(to)[word] = reinterpret_cast<const uint4*>(from)[word];
}

__global__ void __launch_bounds__(kBlock)
    describe_kernel(const DrawTask* tasks, const int32_t* tokens, DrawnRows to, int vocab, int count) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= count) return;
  const DrawTask task = tasks[i];
  const bool there = task.row >= 0;
  to.source[i] = there ? task.row : 0;
  to.scale[i] = there && task.temperature > 0 ? __frcp_rn(float(task.temperature)) : 1.0f;
  // A filtered draw keeps the log-prob that sample() gave it: of the distribution that it was drawn from.
  to.targets[i] = there && !is_filtered(task, vocab) ? tokens[i] : -1;
}

__global__ void __launch_bounds__(kBlock) finish_kernel(const float* target_logits, const float* log_sums,
                                                        const int64_t* targets, float* logprobs, int count) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < count && targets[i] >= 0) logprobs[i] = __fsub_rn(target_logits[i], log_sums[i]);
}

unsigned blocks_for(int64_t items) { return unsigned((items + kBlock - 1) / kBlock); }

}  // namespace

void gather_rows(const void* table, const int32_t* rows, void* out, int64_t bytes, int count, cudaStream_t stream) {
  const int64_t words = bytes / 16, all = words * count;
  if (all == 0) return;
  gather_kernel<<<blocks_for(all), kBlock, 0, stream>>>(static_cast<const uint4*>(table), rows,
                                                        static_cast<uint4*>(out), words, all);
  check(cudaGetLastError(), "gather of rows");
}

void append_keys_values(const __nv_bfloat16* qkv, const int32_t* slots, __nv_bfloat16* keys, __nv_bfloat16* values,
                        const QkvShape& shape, cudaStream_t stream) {
  if (shape.rows == 0) return;
  append_kernel<<<blocks_for(int64_t(shape.rows) * 2 * shape.kv_heads * (shape.dim / kVector)), kBlock, 0, stream>>>(
      qkv, slots, keys, values, shape);
  check(cudaGetLastError(), "cache append");
}

void describe_draws(const DrawTask* tasks, const int32_t* tokens, const DrawnRows& to, int vocab, int count,
                    cudaStream_t stream) {
  if (count == 0) return;
  describe_kernel<<<blocks_for(count), kBlock, 0, stream>>>(tasks, tokens, to, vocab, count);
  check(cudaGetLastError(), "log-probs of draws");
}

void finish_logprobs(const float* target_logits, const float* log_sums, const int64_t* targets, float* logprobs,
                     int count, cudaStream_t stream) {
  if (count == 0) return;
  finish_kernel<<<blocks_for(count), kBlock, 0, stream>>>(target_logits, log_sums, targets, logprobs, count);
  check(cudaGetLastError(), "log-probs of draws");
}

}  // namespace hexad::native::cuda
