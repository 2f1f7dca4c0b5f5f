#include <cmath>

#include "modeling/op/cuda/mma.cuh"
#include "plugins/native/cuda/attention/attention.hpp"
#include "plugins/native/cuda/early_launch.cuh"

namespace hexad::native::cuda {
namespace {

using modeling::cuda::multiply_tile, modeling::cuda::packed;

// A block has an item and one of its heads of keys: its warps take 16 keys in turn, each with a softmax of its own, and
// join their results at the end. Scores are keys x heads (mma.m16n8k16: 16 keys, up to 8 heads that share them),
// results dims x heads. Keys and values come straight from memory into the registers where the instruction wants them:
// a lane loads 16 neighbours of a row, and the order of dims that this makes is the same on both sides of a product.
constexpr int kWarps = 4, kKeys = 16;

__device__ uint4 load(const __nv_bfloat16* from) { return __ldcg(reinterpret_cast<const uint4*>(from)); }

// Two numbers of a row of an 8 x 8 matrix -> two of a column.
__device__ uint32_t transposed(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

// Over the lanes that have the same two heads.
__device__ float highest(float x) {
  for (int step = 4; step < 32; step *= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}
__device__ float total(float x) {
  for (int step = 4; step < 32; step *= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// Where the positions of a request lie in a pool.
struct Places {
  const int32_t* blocks;
  int block_size, kv_heads, kv_head;

  template <int kDim>
  __device__ int64_t of(int position) const {
    const int64_t block = blocks[position / block_size];
    return ((block * kv_heads + kv_head) * block_size + position % block_size) * kDim;
  }
};

// 16 keys and values of a warp. `key`: a lane's rows are key + lane / 4 and that + 8. `value`: its rows are
// key + lane % 4 * 2 + {0, 1, 8, 9}, of which it has dims [lane / 4 * kDim / 8, + kDim / 8).
template <int kDim>
struct Tile {
  static constexpr int kParts = kDim / 32, kPieces = kDim / 64;
  uint4 key[2][kParts], value[4][kPieces];

  __device__ void load_key(int i, const __nv_bfloat16* keys, const Places& places, int position) {
    const __nv_bfloat16* from = keys + places.of<kDim>(position) + threadIdx.x % 4 * 8;
#pragma unroll
    for (int part = 0; part < kParts; ++part) key[i][part] = load(from + part * 32);
  }
  __device__ void load_value(int i, const __nv_bfloat16* values, const Places& places, int position) {
    const __nv_bfloat16* from = values + places.of<kDim>(position) + threadIdx.x % 32 / 4 * (kDim / 8);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) value[i][piece] = load(from + piece * 8);
  }
  __device__ uint32_t word(int i, int j) const {
    const uint4& x = value[i][j / 4];
    return j % 4 == 0 ? x.x : j % 4 == 1 ? x.y : j % 4 == 2 ? x.z : x.w;
  }
};

// What a warp has seen, of heads lane % 4 * 2 + {0, 1}: base-2 maxima and sums of exponentials (the latter of this
// lane's keys alone), and sum[j] = dims lane / 4 * kDim / 8 + 2 * j + {0, 1} (x 2 heads).
template <int kDim>
struct Softmax {
  float largest[2] = {-INFINITY, -INFINITY}, exponentials[2] = {};
  float sum[kDim / 16][4] = {};

  // scores: [key, head] as mma leaves them, base 2; -inf where there is no key.
  __device__ void add(const float (&scores)[4], const Tile<kDim>& tile) {
    float p[4];
#pragma unroll
    for (int head = 0; head < 2; ++head) {
      const float next = fmaxf(largest[head], highest(fmaxf(scores[head], scores[head + 2])));
      const float keep = exp2f(largest[head] - next);
      largest[head] = next;
      p[head] = exp2f(scores[head] - next), p[head + 2] = exp2f(scores[head + 2] - next);
      exponentials[head] = exponentials[head] * keep + p[head] + p[head + 2];
#pragma unroll
      for (int j = 0; j < kDim / 16; ++j) sum[j][head] *= keep, sum[j][head + 2] *= keep;
    }
    const uint32_t b0 = transposed(packed(p[0], p[1])), b1 = transposed(packed(p[2], p[3]));
#pragma unroll
    for (int j = 0; j < kDim / 16; ++j) {
      const uint32_t a = tile.word(0, j), b = tile.word(1, j), c = tile.word(2, j), d = tile.word(3, j);
      multiply_tile(sum[j], __byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632), __byte_perm(c, d, 0x5410),
                    __byte_perm(c, d, 0x7632), b0, b1);
    }
  }
};

template <int kDim>
__global__ void __launch_bounds__(kWarps * 32)
    row_attention_kernel(AttentionShape shape, LevelArrays level, const __nv_bfloat16* q, const __nv_bfloat16* keys,
                         const __nv_bfloat16* values, __nv_bfloat16* partials, float* log_sums, float scale) {
  constexpr int kParts = kDim / 32, kHeads = 8;
  start_next();
  const int item = int(blockIdx.x) / shape.kv_heads, kv_head = int(blockIdx.x) % shape.kv_heads;
  if (!level.valid[item]) return after_earlier();
  const int request = level.request[item], chunk = level.chunk[item], group = shape.heads / shape.kv_heads;
  const int first = level.block_indptr[request], count = level.block_indptr[request + 1] - first;
  const int length = (count - 1) * shape.block_size + level.last_block_size[request];
  const int begin = chunk * *level.chunk_size, end = min(begin + *level.chunk_size, length);
  const Places places{level.blocks + first, shape.block_size, shape.kv_heads, kv_head};
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4 * 2;

  Tile<kDim> tile;
  // Past the end a lane loads the last position again, and its score is -inf.
  const auto load_tile = [&](int at, bool newest_alone) {
    const auto wanted = [&](int position) { return !newest_alone || position >= length - 1; };
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (wanted(at + row + 8 * i)) tile.load_key(i, keys, places, min(at + row + 8 * i, end - 1));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int position = at + pair + i % 2 + i / 2 * 8;
      if (wanted(position)) tile.load_value(i, values, places, min(position, end - 1));
    }
  };
  int at = begin + warp * kKeys;
  if (at < end) load_tile(at, false);  // what earlier passes wrote, all but the newest position
  after_earlier();
  if (at < end && end == length) load_tile(at, true);

  uint4 heads[kParts] = {};
  if (row < group) {
    const __nv_bfloat16* from = q + int64_t(level.q_indptr[request]) * shape.q_stride + (kv_head * group + row) * kDim;
#pragma unroll
    for (int part = 0; part < kParts; ++part) heads[part] = load(from + lane % 4 * 8 + part * 32);
  }
  Softmax<kDim> softmax;
  while (at < end) {
    float scores[4] = {};
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const uint4 &low = tile.key[0][part], &high = tile.key[1][part], &x = heads[part];
      multiply_tile(scores, low.x, high.x, low.y, high.y, x.x, x.y);
      multiply_tile(scores, low.z, high.z, low.w, high.w, x.z, x.w);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[i] = at + row + i / 2 * 8 < end ? scores[i] * scale : -INFINITY;
    softmax.add(scores, tile);
    at += kWarps * kKeys;
    if (at < end) load_tile(at, false);
  }

  __shared__ float sums[kWarps][kHeads][kDim + 4], largest[kWarps][kHeads], exponentials[kWarps][kHeads];
#pragma unroll
  for (int head = 0; head < 2; ++head) {
    const float all = total(softmax.exponentials[head]);
    if (row == 0) largest[warp][pair + head] = softmax.largest[head], exponentials[warp][pair + head] = all;
#pragma unroll
    for (int j = 0; j < kDim / 16; ++j) {
      sums[warp][pair + head][row * (kDim / 8) + 2 * j] = softmax.sum[j][head];
      sums[warp][pair + head][row * (kDim / 8) + 2 * j + 1] = softmax.sum[j][head + 2];
    }
  }
  __syncthreads();
  const int64_t partial = int64_t(level.o_indptr[request] + chunk) * shape.heads + kv_head * group;
  for (int i = threadIdx.x; i < group * kDim; i += kWarps * 32) {
    const int head = i / kDim, dim = i % kDim;
    float most = -INFINITY, all = 0, sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) most = fmaxf(most, largest[w][head]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float share = exp2f(largest[w][head] - most);
      all += exponentials[w][head] * share, sum += sums[w][head][dim] * share;
    }
    partials[partial * kDim + i] = __float2bfloat16_rn(sum / all);
    if (dim == 0) log_sums[partial + head] = most + log2f(all);
  }
}

}  // namespace

bool is_row_shape(const AttentionShape& shape) { return shape.heads <= 8 * shape.kv_heads && shape.q_stride % 8 == 0; }

void attend_rows(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                 __nv_bfloat16* partials, float* log_sums, cudaStream_t stream) {
  if (level.items == 0) return;
  const auto kernel = shape.dim == 128 ? row_attention_kernel<128> : row_attention_kernel<64>;
  const float scale = float(1.4426950408889634 / std::sqrt(double(shape.dim)));
  launch_early("attention of rows", kernel, unsigned(level.items * shape.kv_heads), kWarps * 32, stream, shape, level,
               q, static_cast<const __nv_bfloat16*>(pools.keys), static_cast<const __nv_bfloat16*>(pools.values),
               partials, log_sums, scale);
}

}  // namespace hexad::native::cuda
