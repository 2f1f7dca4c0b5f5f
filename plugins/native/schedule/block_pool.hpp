// Numbers of the KV cache's blocks, with reference counts: a block is shared by sequences with a common prefix.
#pragma once
#include <cstdint>
#include <vector>

namespace hexad::native {

class BlockPool {
 public:
  explicit BlockPool(int64_t blocks);

  int64_t size() const { return static_cast<int64_t>(references_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int32_t references(int32_t block) const { return references_[block]; }

  // A block with one reference. There must be a free one.
  int32_t allocate();
  void share(int32_t block) { ++references_[block]; }
  // Drops one reference; the last one frees the block.
  void release(int32_t block);
  void release(std::vector<int32_t>& blocks);  // all of them, and empties the list

 private:
  std::vector<int32_t> references_;
  std::vector<int32_t> free_;  // a stack: the block freed last is still in a cache
};

}  // namespace hexad::native
