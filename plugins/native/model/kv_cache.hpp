// The paged cache of keys and values: tensors that live on the model's device, cut into blocks of positions.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "plugins/native/schedule/scheduler.hpp"

namespace hexad::native {

// columns: the keys of a block and head are a matrix [head_dim, block_size]. rows: [block_size, head_dim], like values.
enum class KeyLayout { columns, rows };

// In dtype e4m3 (kv_cache_dtype fp8) they are what was made, cast as it is: the scale is 1, as vLLM's without
// calibration, and magnitudes above 448 become 448.
class KvCache {
 public:
  // Allocates nothing yet. keep_routes: of a model with experts, where its routers sent each position too.
  KvCache(const modeling::ModelConfig& config, int64_t block_size, int64_t num_blocks, at::ScalarType dtype,
          at::Device device, bool keep_routes = false, KeyLayout layout = KeyLayout::columns);

  static int64_t bytes_per_block(const modeling::ModelConfig& config, int64_t block_size, at::ScalarType dtype);

  int64_t block_size() const { return block_size_; }
  int64_t num_blocks() const { return num_blocks_; }
  at::ScalarType dtype() const { return dtype_; }

  // Memory comes with allocate() (untouched: pages of the host appear as they are written; throws when there is not
  // enough) and goes with release().
  void allocate();
  bool allocated() const { return !keys_.empty(); }
  void release();
  int64_t allocations() const { return allocations_; }  // so far

  // Keys [blocks, kv_heads, head_dim, block_size] in columns, else as values: [blocks, kv_heads, block_size, head_dim].
  const at::Tensor& keys(int64_t layer) const { return keys_[layer]; }
  const at::Tensor& values(int64_t layer) const { return values_[layer]; }

  // Layers with experts and experts a token; {0, 0} unless routes are kept. They lie on the host, int16
  // [blocks, block_size, layers, experts]: whatever shares, copies or drops keys and values does so with them.
  std::pair<int64_t, int64_t> routes_shape() const { return {routed_layers_, topk_}; }
  const at::Tensor& routes() const { return routes_; }

  // In order: a block that was copied from may be copied to.
  void copy(const std::vector<BlockCopy>& copies);

 private:
  void allocate_pools();

  int64_t layers_, kv_heads_, head_dim_, block_size_, num_blocks_;
  at::ScalarType dtype_;
  at::Device device_;
  KeyLayout layout_;
  at::Tensor pools_;  // in rows: [layers * 2, blocks, kv_heads, block_size, head_dim], all keys and values
  int64_t routed_layers_ = 0, topk_ = 0, allocations_ = 0;
  std::vector<at::Tensor> keys_, values_;
  at::Tensor routes_;
};

}  // namespace hexad::native
