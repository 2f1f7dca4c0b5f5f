#include "plugins/native/schedule/block_pool.hpp"

#include <stdexcept>

namespace hexad::native {

BlockPool::BlockPool(int64_t blocks) : references_(blocks, 0) {
  for (int64_t block = blocks - 1; block >= 0; --block) free_.push_back(static_cast<int32_t>(block));
}

int32_t BlockPool::allocate() {
  if (free_.empty()) throw std::logic_error("the KV cache has no free block");
  const int32_t block = free_.back();
  free_.pop_back();
  references_[block] = 1;
  return block;
}

void BlockPool::release(int32_t block) {
  if (references_[block] <= 0) throw std::logic_error("a KV block was released twice");
  if (--references_[block] == 0) free_.push_back(block);
}

void BlockPool::release(std::vector<int32_t>& blocks) {
  for (const int32_t block : blocks) release(block);
  blocks.clear();
}

}  // namespace hexad::native
