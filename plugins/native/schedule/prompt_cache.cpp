#include "plugins/native/schedule/prompt_cache.hpp"

namespace hexad::native {

const std::vector<int32_t>* PromptCache::find(uint64_t group, std::span<const int32_t> prompt) {
  const auto found = entries_.find(View{group, prompt});
  if (found == entries_.end()) return nullptr;
  found->second.used = ++clock_;
  return &found->second.blocks;
}

void PromptCache::insert(uint64_t group, std::span<const int32_t> prompt, std::span<const int32_t> blocks) {
  const auto [entry, added] = entries_.try_emplace(Key{group, {prompt.begin(), prompt.end()}});
  entry->second.used = ++clock_;
  if (!added) return;
  entry->second.blocks.assign(blocks.begin(), blocks.end());
  for (const int32_t block : blocks) pool_.share(block);
}

int64_t PromptCache::freeable(const Entry& entry) const {
  return std::count_if(entry.blocks.begin(), entry.blocks.end(),
                       [&](int32_t block) { return pool_.references(block) == 1; });
}

int64_t PromptCache::freeable() const {
  int64_t total = 0;
  for (const auto& [key, entry] : entries_) total += freeable(entry);
  return total;
}

bool PromptCache::drop_one() {
  auto victim = entries_.end();
  bool victim_frees = false;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const bool frees = freeable(it->second) > 0;
    const bool better = victim == entries_.end() || (frees && !victim_frees) ||
                        (frees == victim_frees && it->second.used < victim->second.used);
    if (better) victim = it, victim_frees = frees;
  }
  if (victim == entries_.end()) return false;
  pool_.release(victim->second.blocks);
  entries_.erase(victim);
  return true;
}

void PromptCache::clear() {
  for (auto& [key, entry] : entries_) pool_.release(entry.blocks);
  entries_.clear();
}

}  // namespace hexad::native
