#include "lib/text/tokenizer/model/bpe_merge.hpp"

#include <algorithm>
#include <limits>

namespace hexad::text {
namespace {

constexpr uint32_t kNoMerge = std::numeric_limits<uint32_t>::max();
// Up to this many tokens a scan for the lowest rank beats a heap.
constexpr size_t kShort = 48;

// std::push_heap keeps the largest in front: the order is turned around.
constexpr auto kLater = [](const auto& a, const auto& b) { return a.rank != b.rank ? a.rank > b.rank : a.at > b.at; };

}  // namespace

void Merger::merge(const MergeTable& merges, bool exact_order) {
  if (tokens.size() < 2) return;
  if (tokens.size() <= kShort && !exact_order)
    merge_short(merges);
  else
    merge_long(merges);
}

void Merger::merge_short(const MergeTable& merges) {
  size_t pairs = tokens.size() - 1;
  ranks_.resize(pairs);
  merged_.resize(pairs);
  const auto look_up = [&](size_t at) {
    const Merge* merge = merges.find(tokens[at], tokens[at + 1]);
    ranks_[at] = merge ? merge->rank : kNoMerge;
    merged_[at] = merge ? merge->id : 0;
  };
  for (size_t at = 0; at < pairs; ++at) look_up(at);
  while (pairs > 0) {
    size_t best = 0;
    for (size_t at = 1; at < pairs; ++at) {
      if (ranks_[at] < ranks_[best]) best = at;
    }
    if (ranks_[best] == kNoMerge) break;
    tokens[best] = merged_[best];
    --pairs;
    for (size_t at = best; at < pairs; ++at) {
      tokens[at + 1] = tokens[at + 2];
      ranks_[at] = ranks_[at + 1];
      merged_[at] = merged_[at + 1];
    }
    if (best < pairs) look_up(best);
    if (best > 0) look_up(best - 1);
  }
  tokens.resize(pairs + 1);
}

void Merger::add_candidate(const MergeTable& merges, int32_t left, int32_t right) {
  if (const Merge* merge = merges.find(symbols_[left].id, symbols_[right].id)) {
    heap_.push_back({merge->rank, static_cast<uint32_t>(left), merge->id});
  }
}

void Merger::merge_long(const MergeTable& merges) {
  const auto count = static_cast<int32_t>(tokens.size());
  symbols_.resize(tokens.size());
  heap_.clear();
  for (int32_t i = 0; i < count; ++i) symbols_[i] = {tokens[i], i - 1, i + 1 < count ? i + 1 : -1, false};
  for (int32_t i = 0; i + 1 < count; ++i) add_candidate(merges, i, i + 1);
  std::make_heap(heap_.begin(), heap_.end(), kLater);
  const auto push = [&](int32_t left, int32_t right) {
    const size_t before = heap_.size();
    add_candidate(merges, left, right);
    if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end(), kLater);
  };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    const Candidate top = heap_.back();
    heap_.pop_back();
    const auto at = static_cast<int32_t>(top.at);
    Symbol& symbol = symbols_[at];
    if (symbol.gone || symbol.next < 0) continue;
    Symbol& right = symbols_[symbol.next];
    const Merge* merge = merges.find(symbol.id, right.id);
    if (merge == nullptr || merge->id != top.id) continue;  // the pair has changed since
    symbol.id = top.id;
    symbol.next = right.next;
    right.gone = true;
    if (symbol.next >= 0) symbols_[symbol.next].previous = at;
    if (symbol.previous >= 0) push(symbol.previous, at);
    if (symbol.next >= 0) push(at, symbol.next);
  }
  tokens.clear();
  for (int32_t i = 0; i >= 0; i = symbols_[i].next) tokens.push_back(symbols_[i].id);
}

}  // namespace hexad::text
