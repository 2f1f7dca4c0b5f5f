#include "plugins/native/model/kv_cache.hpp"

#include "plugins/native/model/own_memory.hpp"

namespace hexad::native {
namespace {

constexpr const char* kNeeds = "the KV cache needs";

}  // namespace

KvCache::KvCache(const modeling::ModelConfig& config, int64_t block_size, int64_t num_blocks, at::ScalarType dtype,
                 at::Device device, bool keep_routes, KeyLayout layout)
    : layers_(config.num_layers),
      kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      block_size_(block_size),
      num_blocks_(num_blocks),
      dtype_(dtype),
      device_(device),
      layout_(layout) {
  if (!keep_routes || !config.moe) return;
  topk_ = config.moe->routing.topk;
  for (int64_t layer = 0; layer < layers_; ++layer) routed_layers_ += config.has_experts(layer);
}

int64_t KvCache::bytes_per_block(const modeling::ModelConfig& config, int64_t block_size, at::ScalarType dtype) {
  return 2 * config.num_layers * config.num_kv_heads * config.head_dim * block_size *
         static_cast<int64_t>(c10::elementSize(dtype));
}

void KvCache::allocate() {
  if (allocated()) return;
  ++allocations_;
  if (layout_ == KeyLayout::rows) return allocate_pools();
  std::vector<at::Tensor> keys, values;  // all or none
  for (int64_t layer = 0; layer < layers_; ++layer) {
    keys.push_back(own_memory({num_blocks_, kv_heads_, head_dim_, block_size_}, dtype_, device_, kNeeds));
    values.push_back(own_memory({num_blocks_, kv_heads_, block_size_, head_dim_}, dtype_, device_, kNeeds));
  }
  if (routed_layers_ > 0) routes_ = at::empty({num_blocks_, block_size_, routed_layers_, topk_}, at::kShort);
  keys_ = std::move(keys);
  values_ = std::move(values);
}

void KvCache::allocate_pools() {
  pools_ = own_memory({layers_ * 2, num_blocks_, kv_heads_, block_size_, head_dim_}, dtype_, device_, kNeeds);
  for (int64_t layer = 0; layer < layers_; ++layer) {
    keys_.push_back(pools_[2 * layer]);
    values_.push_back(pools_[2 * layer + 1]);
  }
}

void KvCache::release() {
  keys_.clear();
  values_.clear();
  pools_.reset();
  routes_.reset();
}

void KvCache::copy(const std::vector<BlockCopy>& copies) {
  if (pools_.defined()) {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (const BlockCopy& copy : copies) pairs.emplace_back(copy.from, copy.to);
    return cuda::copy_pool_blocks(pools_, pairs);
  }
  for (const BlockCopy& copy : copies) {
    for (int64_t layer = 0; layer < layers_; ++layer) {
      keys_[layer][copy.to].copy_(keys_[layer][copy.from]);
      values_[layer][copy.to].copy_(values_[layer][copy.from]);
    }
    if (routes_.defined()) routes_[copy.to].copy_(routes_[copy.from]);
  }
}

}  // namespace hexad::native
