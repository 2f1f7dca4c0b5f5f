// The merging loop of byte-pair encoding: the pair of lowest rank first, the leftmost of equals.
#pragma once
#include <cstdint>
#include <vector>

#include "lib/text/tokenizer/model/flat_map.hpp"

namespace hexad::text {

struct Merge {
  uint32_t rank = 0;
  int32_t id = 0;  // of the two tokens together
};

class MergeTable {
 public:
  explicit MergeTable(size_t expected) : merges_(expected) {}

  void set(int32_t left, int32_t right, Merge merge) { merges_[key(left, right)] = merge; }
  const Merge* find(int32_t left, int32_t right) const { return merges_.find(key(left, right)); }

 private:
  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  FlatMap<Merge> merges_;
};

// Tokens of a word, merged in place; keeps memory from word to word.
class Merger {
 public:
  // The initial tokens; filled by the caller, merged by `merge`.
  std::vector<int32_t> tokens;

  // Merges until nothing can be merged. `exact_order`: also where a token does not determine its text (unknown
  // characters), by the queue of `tokenizers`, in which an entry stays good as long as it makes the same token.
  void merge(const MergeTable& merges, bool exact_order);

 private:
  struct Symbol {
    int32_t id;
    int32_t previous, next;  // -1: none
    bool gone;
  };
  struct Candidate {
    uint32_t rank, at;
    int32_t id;
  };

  void merge_short(const MergeTable& merges);
  void merge_long(const MergeTable& merges);
  void add_candidate(const MergeTable& merges, int32_t left, int32_t right);

  std::vector<uint32_t> ranks_;
  std::vector<int32_t> merged_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace hexad::text
