#include "modeling/backend/shared_prefixes.hpp"

#include <unordered_map>

namespace hexad::modeling {
namespace {

struct Next {
  int64_t row, id;
  bool operator==(const Next&) const = default;
};

struct NextHash {
  size_t operator()(const Next& next) const {
    return std::hash<uint64_t>()((static_cast<uint64_t>(next.row) << 32) ^ static_cast<uint64_t>(next.id));
  }
};

}  // namespace

SharedPrefixes shared_prefixes(std::span<const int64_t> ids, std::span<const int64_t> offsets) {
  SharedPrefixes result;
  std::unordered_map<Next, int64_t, NextHash> rows;  // a trie: the row of a token after a row
  rows.reserve(ids.size());
  result.row_of_token.reserve(ids.size());
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    int64_t before = -1;
    for (int64_t t = offsets[b]; t < offsets[b + 1]; ++t) {
      const auto next = static_cast<int64_t>(result.first_token.size());
      const auto [found, made] = rows.try_emplace({before, ids[static_cast<size_t>(t)]}, next);
      if (made) result.first_token.push_back(t), result.parent.push_back(before);
      result.row_of_token.push_back(before = found->second);
    }
  }
  return result;
}

}  // namespace hexad::modeling
