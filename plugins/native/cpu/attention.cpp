#include "plugins/native/cpu/attention.hpp"

#include <algorithm>
#include <vector>

#include "modeling/op/cpu/isa.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "plugins/native/cpu/attention_tile.hpp"

namespace hexad::native::cpu {
namespace {

using modeling::cpu::isa;
using modeling::cpu::Isa;

template <typename T>
using Kernel = void (*)(const AttentionShape& shape, const QueryTile& tile, int queries, const LayerCache<T>& cache,
                        float* scratch);

#if defined(HEXAD_TARGET_V4)
template <int W, typename T>
HEXAD_TARGET_V4 void kernel_v4(const AttentionShape& shape, const QueryTile& tile, int queries,
                               const LayerCache<T>& cache, float* scratch) {
  attend_queries<16, W, T>(shape, tile, queries, cache, scratch);
}
template <int W, typename T>
HEXAD_TARGET_V3 void kernel_v3(const AttentionShape& shape, const QueryTile& tile, int queries,
                               const LayerCache<T>& cache, float* scratch) {
  attend_queries<8, W, T>(shape, tile, queries, cache, scratch);
}
#endif
template <int W, typename T>
void kernel_base(const AttentionShape& shape, const QueryTile& tile, int queries, const LayerCache<T>& cache,
                 float* scratch) {
  attend_queries<4, W, T>(shape, tile, queries, cache, scratch);
}

template <int W, typename T>
Kernel<T> kernel_of_isa() {
#if defined(HEXAD_TARGET_V4)
  if constexpr (sizeof(T) > 1) {  // a cache in e4m3 is there to compare with a GPU's: not worth its compile time thrice
    if (isa() == Isa::v4) return kernel_v4<W, T>;
    if (isa() == Isa::v3) return kernel_v3<std::min(W, 8), T>;
  }
#endif
  return kernel_base<std::min(W, 4), T>;
}

template <typename T>
Kernel<T> choose_kernel(int64_t block_size) {
  if (block_size % 16 == 0) return kernel_of_isa<16, T>();
  if (block_size % 8 == 0) return kernel_of_isa<8, T>();
  if (block_size % 4 == 0) return kernel_of_isa<4, T>();
  return kernel_of_isa<1, T>();
}

// Queries of one tile: neighbouring tokens of a sequence, each with all heads of one KV head.
struct Item {
  const SequenceRows* rows;
  int64_t kv_head, first, count;  // first and count in (token, head of the group) pairs
};

// KV heads outermost: sequences that share a prompt follow each other while its keys and values are in a cache.
std::vector<Item> items_of(const AttentionShape& shape, std::span<const SequenceRows> sequences) {
  constexpr int64_t kQueriesPerItem = 16 * kMaxQueries;
  const int64_t group = shape.heads / shape.kv_heads;
  std::vector<Item> items;
  for (int64_t head = 0; head < shape.kv_heads; ++head) {
    for (const SequenceRows& rows : sequences) {
      for (int64_t first = 0; first < rows.count * group; first += kQueriesPerItem) {
        items.push_back({&rows, head, first, std::min(kQueriesPerItem, rows.count * group - first)});
      }
    }
  }
  return items;
}

template <typename T>
void run_item(const AttentionShape& shape, const Item& item, const float* q, float* out, const LayerCache<T>& cache,
              Kernel<T> kernel) {
  thread_local std::vector<float> scratch;
  scratch.resize(2 * kMaxQueries * ((shape.head_dim + 15) / 16 * 16));
  const int64_t group = shape.heads / shape.kv_heads;
  for (int64_t first = item.first; first < item.first + item.count; first += kMaxQueries) {
    const int queries = int(std::min<int64_t>(kMaxQueries, item.first + item.count - first));
    QueryTile tile;
    tile.blocks = item.rows->blocks;
    tile.kv_head = item.kv_head;
    for (int r = 0; r < queries; ++r) {
      const int64_t token = (first + r) / group, head = item.kv_head * group + (first + r) % group;
      const int64_t offset = ((item.rows->row + token) * shape.heads + head) * shape.head_dim;
      tile.q[r] = q + offset;
      tile.out[r] = out + offset;
      tile.position[r] = item.rows->start + token;
    }
    kernel(shape, tile, queries, cache, scratch.data());
  }
}

}  // namespace

template <typename T>
void attend(const AttentionShape& shape, std::span<const SequenceRows> sequences, const float* q, float* out,
            const LayerCache<T>& cache) {
  const Kernel<T> kernel = choose_kernel<T>(shape.block_size);
  const std::vector<Item> items = items_of(shape, sequences);
  int64_t pairs = 0;  // of queries and keys
  for (const SequenceRows& rows : sequences) pairs += rows.count * (rows.start + rows.count);
  // A thread is worth waking for a few ten microseconds of work.
  const bool alone = pairs * shape.heads * shape.head_dim < int64_t{1} << 19;
  modeling::cpu::parallel_each(static_cast<int64_t>(items.size()), alone ? 1 : INT64_MAX,
                               [&](int64_t i) { run_item(shape, items[i], q, out, cache, kernel); });
}

template <typename T>
void write_cache(const AttentionShape& shape, std::span<const SequenceRows> sequences, const float* k, const float* v,
                 const LayerCache<T>& cache) {
  const int64_t dim = shape.head_dim, size = shape.block_size;
  for (const SequenceRows& rows : sequences) {
    for (int64_t token = 0; token < rows.count; ++token) {
      const int64_t position = rows.start + token, block = rows.blocks[position / size], offset = position % size;
      for (int64_t head = 0; head < shape.kv_heads; ++head) {
        const float* key = k + ((rows.row + token) * shape.kv_heads + head) * dim;
        const float* value = v + ((rows.row + token) * shape.kv_heads + head) * dim;
        T* keys = cache.keys + (block * shape.kv_heads + head) * dim * size + offset;
        T* values = cache.values + ((block * shape.kv_heads + head) * size + offset) * dim;
        for (int64_t d = 0; d < dim; ++d) from_float(key[d], keys[d * size]);
        for (int64_t d = 0; d < dim; ++d) from_float(value[d], values[d]);
      }
    }
  }
}

template void attend<float>(const AttentionShape&, std::span<const SequenceRows>, const float*, float*,
                            const LayerCache<float>&);
template void attend<BFloat16>(const AttentionShape&, std::span<const SequenceRows>, const float*, float*,
                               const LayerCache<BFloat16>&);
template void attend<Float8>(const AttentionShape&, std::span<const SequenceRows>, const float*, float*,
                             const LayerCache<Float8>&);
template void write_cache<float>(const AttentionShape&, std::span<const SequenceRows>, const float*, const float*,
                                 const LayerCache<float>&);
template void write_cache<BFloat16>(const AttentionShape&, std::span<const SequenceRows>, const float*, const float*,
                                    const LayerCache<BFloat16>&);
template void write_cache<Float8>(const AttentionShape&, std::span<const SequenceRows>, const float*, const float*,
                                  const LayerCache<Float8>&);

}  // namespace hexad::native::cpu
