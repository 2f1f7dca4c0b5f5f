// Prompts whose keys and values are in the cache, by group: the samples of a group start from the same blocks. An entry
// holds a reference on each of its blocks and is dropped when memory is wanted.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "plugins/native/schedule/block_pool.hpp"

namespace hexad::native {

class PromptCache {
 public:
  explicit PromptCache(BlockPool& pool) : pool_(pool) {}

  // Blocks of exactly this prompt in this group; null if they are not there.
  const std::vector<int32_t>* find(uint64_t group, std::span<const int32_t> prompt);
  // Takes a reference on every block. A prompt that is there already stays as it is.
  void insert(uint64_t group, std::span<const int32_t> prompt, std::span<const int32_t> blocks);

  // Blocks that dropping every entry would free.
  int64_t freeable() const;
  // Drops the least recently used entry that frees a block, or, when none does, the least recently used one. False when
  // there is none.
  bool drop_one();
  void clear();
  size_t size() const { return entries_.size(); }

 private:
  struct Key {
    uint64_t group;
    std::vector<int32_t> prompt;
  };
  struct View {
    uint64_t group;
    std::span<const int32_t> prompt;
  };
  struct Less {
    using is_transparent = void;
    static View view(const Key& key) { return {key.group, key.prompt}; }
    static View view(const View& view) { return view; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      const View x = view(a), y = view(b);
      if (x.group != y.group) return x.group < y.group;
      return std::lexicographical_compare(x.prompt.begin(), x.prompt.end(), y.prompt.begin(), y.prompt.end());
    }
  };
  struct Entry {
    std::vector<int32_t> blocks;
    uint64_t used;
  };
  int64_t freeable(const Entry& entry) const;

  BlockPool& pool_;
  std::map<Key, Entry, Less> entries_;
  uint64_t clock_ = 0;
};

}  // namespace hexad::native
