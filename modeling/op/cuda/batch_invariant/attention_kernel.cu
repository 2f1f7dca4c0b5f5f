#include <climits>
#include <cmath>

#include "modeling/op/cuda/batch_invariant/attention_kernel.hpp"
#include "modeling/op/cuda/mma.cuh"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kKeys = kInvariantTileKeys;
constexpr int kRows = 16;   // rows x heads of a warp: what mma.m16n8k16 takes
constexpr int kStages = 2;  // tiles of keys and values that are held
constexpr float kLn2 = 0.6931471805599453f;

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
// 16 bytes, or zeros in their place.
__device__ void copy_async(uint32_t to, const void* from, bool there) {
  const int bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
// Four 8 x 8 matrices; lane i has the address of row i % 8 of matrix i / 8.
__device__ void load_matrices(uint32_t (&x)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}
__device__ void load_transposed(uint32_t (&x)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}
__device__ void multiply_add(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  multiply_tile(sum, a[0], a[1], a[2], a[3], b0, b1);
}
__device__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The largest of the four lanes that share a row.
__device__ float largest_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

// Which rows and keys a thread block has.
struct Work {
  int sequence, tile;        // tile: of rows x heads, as many as the block's warps take
  int first_row, rows;       // of the sequence's queries
  int keys, first_position;  // of the sequence; of its first query

  template <int kWarps>
  __device__ static Work of(const InvariantAttention& c) {
    Work w;
    if (c.item_sequence) {
      const int parts = c.item_rows / (kRows * kWarps), item = blockIdx.x / parts;
      w.sequence = c.item_sequence[item];
      w.tile = c.item_tile[item] * parts + blockIdx.x % parts;
      if (c.item_valid && !c.item_valid[item]) w.tile = INT_MAX / (kRows * kWarps);  // beyond every row
    } else {
      w.sequence = blockIdx.z;
      w.tile = gridDim.x - 1 - blockIdx.x;  // late tiles see more keys
    }
    w.first_row = c.q_indptr[w.sequence];
    w.rows = c.q_indptr[w.sequence + 1] - w.first_row;
    w.keys = w.rows;
    if (c.blocks) {
      const int blocks = c.block_indptr[w.sequence + 1] - c.block_indptr[w.sequence];
      w.keys = blocks == 0 ? 0 : (blocks - 1) * c.block_size + c.last_block_size[w.sequence];
    }
    w.first_position = w.keys - w.rows;
    return w;
  }
  // The last key that a query sees.
  __device__ int position(const InvariantAttention& c, int row) const {
    return c.leaves ? keys - 1 : first_position + row;
  }
};

// The tile's keys and values on their way to shared memory: rows of dim elements whose 16-byte words are swapped so
// that eight rows at one column lie in different banks.
template <int kDim, int kWarps>
class TileLoader {
 public:
  static constexpr int kWords = kDim / 8;                   // of a row
  static constexpr uint32_t kTileBytes = kKeys * kDim * 2;  // of keys, and of values behind them
  static constexpr int kMine = kKeys / kWarps;              // keys that a warp copies
  static constexpr int kAtOnce = 32 / kWords, kPerLane = kMine > 32 ? kMine / 32 : 1;

  __device__ TileLoader(const InvariantAttention& call, const Work& work, int kv_head, uint32_t shared)
      : c_(call),
        keys_(static_cast<const __nv_bfloat16*>(call.keys) + kv_head * call.key_head_stride),
        values_(static_cast<const __nv_bfloat16*>(call.values) + kv_head * call.value_head_stride),
        table_(call.blocks ? call.blocks + call.block_indptr[work.sequence] : nullptr),
        first_(work.first_row),
        count_(work.keys),
        shared_(shared) {}

  // Where row `row` of a tile has its word `word`.
  __device__ static uint32_t offset(int row, int word) { return row * (kDim * 2) + ((word ^ (row & 7)) * 16); }
  __device__ uint32_t keys(int stage) const { return shared_ + stage * 2 * kTileBytes; }
  __device__ uint32_t values(int stage) const { return keys(stage) + kTileBytes; }

  // Enqueues the copies of tile `tile`. All lanes of a warp call it.
  __device__ void start(int tile, int stage) const {
    const int lane = threadIdx.x % 32, begin = threadIdx.x / 32 * kMine;
    int places[kPerLane];  // of the keys that lane looks up for its warp
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) places[i] = place(tile * kKeys + begin + i * 32 + lane % kMine);
#pragma unroll
    for (int step = 0; step < kMine / kAtOnce; ++step) {
      const int within = step * kAtOnce + lane / kWords, word = lane % kWords, row = begin + within;
      const int64_t at = __shfl_sync(~0u, places[step * kAtOnce / 32], within % 32);
      const bool there = tile * kKeys + row < count_;
      copy_async(keys(stage) + offset(row, word), keys_ + at * c_.key_stride + word * 8, there);
      copy_async(values(stage) + offset(row, word), values_ + at * c_.value_stride + word * 8, there);
    }
  }

 private:
  // 0 beyond the last key: the address of a copy of no bytes must be one that exists.
  __device__ int place(int key) const {
    if (key >= count_) return 0;
    if (!table_) return first_ + key;
    return int(table_[key / c_.block_size] * c_.block_places) + key % c_.block_size;
  }

  const InvariantAttention& c_;
  const __nv_bfloat16 *keys_, *values_;
  const int32_t* table_;
  int first_, count_;
  uint32_t shared_;
};

// What a lane knows of the two rows (lane / 4, and 8 more) of its warp's sixteen.
template <int kDim>
struct RowState {
  uint32_t q[kDim / 16][4];     // the left factor of the scores
  float out[kDim / 8][4] = {};  // columns in eights
  float sum[4] = {};            // of exponentials, the same in every column
  float largest[2] = {-INFINITY, -INFINITY};
  int position[2];  // of the queries
};

// One tile: lanes' addresses are those of load_matrices().
template <int kDim>
__device__ void attend_tile(RowState<kDim>& state, uint32_t keys, uint32_t values, int first_key, float scale) {
  using Loader = TileLoader<kDim, 1>;
  const int lane = threadIdx.x % 32;
  float s[kKeys / 8][4] = {};
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      uint32_t b[4];
      load_matrices(b, keys + Loader::offset(n * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
      multiply_add(s[2 * n], state.q[k], b[0], b[1]);
      multiply_add(s[2 * n + 1], state.q[k], b[2], b[3]);
    }
  }
  float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first_key + n * 8 + lane % 4 * 2 + i % 2 > state.position[i / 2]) s[n][i] = -INFINITY;
      top[i / 2] = fmaxf(top[i / 2], s[n][i]);
    }
  }
  float factor[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    // Rounded products on both sides: where the largest stays, the factor is exactly 1.
    const float largest = fmaxf(state.largest[i], __fmul_rn(largest_of_row(top[i]), scale));
    factor[i] = exp2_of(__fsub_rn(state.largest[i], largest));
    state.largest[i] = largest;
  }
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) state.out[n][i] = __fmul_rn(state.out[n][i], factor[i / 2]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) state.sum[i] = __fmul_rn(state.sum[i], factor[i / 2]);
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    uint32_t e[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&x)[4] = s[2 * k + i / 2];
      const int row = i % 2;
      e[i] = packed(exp2_of(__fmaf_rn(x[2 * row], scale, -state.largest[row])),
                    exp2_of(__fmaf_rn(x[2 * row + 1], scale, -state.largest[row])));
    }
    constexpr uint32_t kOnes = 0x3f803f80u;
    multiply_add(state.sum, e, kOnes, kOnes);
#pragma unroll
    for (int n = 0; n < kDim / 16; ++n) {
      uint32_t b[4];
      load_transposed(b, values + Loader::offset(k * 16 + lane / 8 % 2 * 8 + lane % 8, n * 2 + lane / 16));
      multiply_add(state.out[2 * n], e, b[0], b[1]);
      multiply_add(state.out[2 * n + 1], e, b[2], b[3]);
    }
  }
}

template <int kDim>
__device__ void leave(const RowState<kDim>& state, const InvariantAttention& c, int i, int64_t at) {
  const int lane = threadIdx.x % 32;
  float2* out = reinterpret_cast<float2*>(c.states + at * kDim);
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) out[n * 4 + lane % 4] = {state.out[n][2 * i], state.out[n][2 * i + 1]};
  if (lane % 4 == 0) reinterpret_cast<float2*>(c.scalars)[at] = {state.largest[i], state.sum[2 * i]};
}

template <int kDim>
__device__ void resume(RowState<kDim>& state, const InvariantAttention& c, const int64_t (&row_of)[2],
                       const int (&head_of)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (c.resumes[row_of[i] * c.resume_stride] == 0) continue;
    const int64_t at = row_of[i] * c.heads + head_of[i];
    const float2* from = reinterpret_cast<const float2*>(c.states + at * kDim);
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      const float2 pair = from[n * 4 + threadIdx.x % 4];
      state.out[n][2 * i] = pair.x, state.out[n][2 * i + 1] = pair.y;
    }
    const float2 scalars = reinterpret_cast<const float2*>(c.scalars)[at];
    state.largest[i] = scalars.x;
    state.sum[2 * i] = state.sum[2 * i + 1] = scalars.y;
  }
}

template <int kDim, int kWarps>
__global__ void __launch_bounds__(kWarps * 32) attention_kernel(InvariantAttention c, float scale) {
  extern __shared__ __align__(128) char memory[];
  const Work work = Work::of<kWarps>(c);
  const int group = c.heads / c.kv_heads, kv_head = blockIdx.y, lane = threadIdx.x % 32;
  const int total = work.rows * group, begin = work.tile * kWarps * kRows;
  if (begin >= total) return;
  const int last = min(begin + kWarps * kRows, total) - 1;
  const int tiles = work.position(c, last / group) / kKeys + 1;

  RowState<kDim> state;
  int64_t row_of[2];
  int head_of[2];
  bool valid[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int index = begin + threadIdx.x / 32 * kRows + lane / 4 + i * 8, clamped = min(index, total - 1);
    valid[i] = index < total;
    row_of[i] = work.first_row + clamped / group;
    head_of[i] = kv_head * group + clamped % group;
    state.position[i] = work.position(c, clamped / group);
    const __nv_bfloat16* q = static_cast<const __nv_bfloat16*>(c.q) + row_of[i] * c.q_stride + head_of[i] * kDim;
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        state.q[k][half * 2 + i] = *reinterpret_cast<const uint32_t*>(q + k * 16 + half * 8 + lane % 4 * 2);
    }
  }

  if (c.resumes) resume(state, c, row_of, head_of);

  const TileLoader<kDim, kWarps> loader(c, work, kv_head, shared_address(memory));
  loader.start(0, 0);
  commit_copies();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) loader.start(tile + 1, (tile + 1) % kStages);
    commit_copies();  // also an empty group: the count below stays right
    wait_for_copies<1>();
    kWarps > 1 ? __syncthreads() : __syncwarp();
    attend_tile<kDim>(state, loader.keys(tile % kStages), loader.values(tile % kStages), tile * kKeys, scale);
    kWarps > 1 ? __syncthreads() : __syncwarp();  // before the stage is written again
  }

#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (!valid[i]) continue;
    const int64_t at = row_of[i] * c.heads + head_of[i];
    if (c.leaves) {
      leave(state, c, i, at);
      continue;
    }
    const float sum = state.sum[2 * i], inverse = __frcp_rn(sum);
    uint32_t* out = reinterpret_cast<uint32_t*>(static_cast<__nv_bfloat16*>(c.out) + at * kDim);
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
      out[n * 4 + lane % 4] =
          packed(__fmul_rn(state.out[n][2 * i], inverse), __fmul_rn(state.out[n][2 * i + 1], inverse));
    if (c.log_sums && lane % 4 == 0) c.log_sums[at] = state.largest[i] * kLn2 + logf(sum);
  }
}

template <int kDim, int kWarps>
void launch(const InvariantAttention& call, CUstream_st* stream) {
  constexpr int kShared = kStages * 2 * TileLoader<kDim, kWarps>::kTileBytes;
  static_assert(kShared <= 99 * 1024, "cards of compute capability 8.6, 8.9 and 12.0 give a thread block no more");
  const auto kernel = attention_kernel<kDim, kWarps>;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared) != cudaSuccess)
    check_launch("invariant_attention");
  const int rows = call.most_rows * (call.heads / call.kv_heads);
  const dim3 grid = call.item_sequence
                        ? dim3(unsigned(call.items * (call.item_rows / (kWarps * kRows))), unsigned(call.kv_heads), 1)
                        : dim3(unsigned(blocks_for(rows, kWarps * kRows)), unsigned(call.kv_heads), call.sequences);
  const float scale = float(1.4426950408889634 / std::sqrt(double(kDim)));
  kernel<<<grid, kWarps * 32, kShared, stream>>>(call, scale);
  check_launch("invariant_attention");
}

}  // namespace

void invariant_attention(const InvariantAttention& call, CUstream_st* stream) {
  const bool nothing = call.item_sequence ? call.items == 0 : call.sequences == 0 || call.most_rows == 0;
  if (nothing) return;
  // One token's heads fill one warp at most times; more warps would wait for it.
  const bool single = !call.item_sequence && call.most_rows == 1;
  if (call.dim == 128) {
    single ? launch<128, 1>(call, stream) : launch<128, 4>(call, stream);
  } else {
    single ? launch<64, 1>(call, stream) : launch<64, 4>(call, stream);
  }
}

}  // namespace hexad::modeling::cuda
