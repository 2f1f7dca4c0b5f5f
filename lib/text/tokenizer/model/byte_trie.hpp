// A set of byte strings with a number each, walked byte by byte.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer/model/flat_map.hpp"

namespace hexad::text {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;

  // Adds `key` with `value` >= 0; a key that is there already takes the new value.
  void insert(std::string_view key, int32_t value) {
    uint32_t node = 0;
    for (const char byte : key) {
      uint32_t& child = children_[edge(node, byte)];
      if (child == 0) child = static_cast<uint32_t>(values_.size()), values_.push_back(kNone);
      node = child;
    }
    values_[node] = value;
  }

  // Calls visit(size, value) for every key that `text` begins with, shortest first.
  template <typename Visit>
  void prefixes(std::string_view text, Visit visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t* child = children_.find(edge(node, text[i]));
      if (child == nullptr) return;
      node = *child;
      if (values_[node] != kNone) visit(i + 1, values_[node]);
    }
  }

 private:
  static uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

  FlatMap<uint32_t> children_;
  std::vector<int32_t> values_{kNone};  // by node; node 0 is the root
};

}  // namespace hexad::text
