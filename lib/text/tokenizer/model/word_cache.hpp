// Ids of words seen before. Most words of a text repeat, and merging is what takes time.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::text {

// Holds at most 2^16 words and then starts over, so that it follows the text. One thread.
class WordCache {
 public:
  static constexpr size_t kLongestWord = 128;  // bytes; longer ones hardly repeat

  static uint64_t hash(std::string_view word) {
    uint64_t state = word.size() * 0x9E3779B97F4A7C15u;
    const char* at = word.data();
    size_t rest = word.size();
    for (; rest > 8; rest -= 8, at += 8) state = mix(state ^ load(at, 8));
    return mix(state ^ load(at, rest));
  }

  // Ids of `word` whose hash is `hash`, or null data when it is not there. Valid until the next insert.
  std::span<const int32_t> find(std::string_view word, uint64_t hash) const {
    if (slots_.empty()) return {};
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.id_count == 0) return {};
      if (slot.hash == hash && slot.text_size == word.size() &&
          std::memcmp(text_.data() + slot.text_at, word.data(), word.size()) == 0) {
        return {ids_.data() + slot.id_at, slot.id_count};
      }
    }
  }

  // Adds a word that is not there, with at least one id.
  void insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (count_ == kMostWords) clear();
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot slot{hash, static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(ids_.size()),
              static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size())};
    text_ += word;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    place(slot);
    ++count_;
  }

 private:
  static constexpr size_t kMostWords = size_t{1} << 16;
  struct Slot {
    uint64_t hash = 0;
    uint32_t text_at = 0, id_at = 0;
    uint16_t text_size = 0, id_count = 0;  // no ids: free
  };

  static uint64_t load(const char* at, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, at, size);
    return value;
  }

  static uint64_t mix(uint64_t value) {
    value *= 0xFF51AFD7ED558CCDu;
    value ^= value >> 32;
    value *= 0xC4CEB9FE1A85EC53u;
    return value ^ value >> 29;
  }

  void place(const Slot& slot) {
    const size_t mask = slots_.size() - 1;
    size_t at = slot.hash & mask;
    while (slots_[at].id_count != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id_count != 0) place(slot);
    }
  }

  void clear() {
    slots_.assign(slots_.size(), Slot{});
    text_.clear();
    ids_.clear();
    count_ = 0;
  }

  std::vector<Slot> slots_;
  std::string text_;
  std::vector<int32_t> ids_;
  size_t count_ = 0;
};

}  // namespace hexad::text
