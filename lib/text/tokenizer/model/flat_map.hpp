// Open-addressing hash map from 64-bit keys, built once and then only read: two cache lines a lookup at most.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hexad::text {

// `Value` is small and trivially copyable. The key ~0 is reserved.
template <typename Value>
class FlatMap {
 public:
  explicit FlatMap(size_t expected = 0) { reserve(expected); }

  const Value* find(uint64_t key) const {
    for (size_t at = slot(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at].value;
      if (slots_[at].key == kEmpty) return nullptr;
    }
  }

  // The value of `key`, default-constructed when new.
  Value& operator[](uint64_t key) {
    if ((size_ + 1) * 2 > slots_.size()) reserve(size_ * 2 + 8);
    size_t at = slot(key);
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask_;
    if (slots_[at].key == kEmpty) slots_[at].key = key, ++size_;
    return slots_[at].value;
  }

  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    Value value{};
  };

  size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  void reserve(size_t expected) {
    const size_t capacity = std::bit_ceil(expected * 2 + 8);
    std::vector<Slot> old(capacity);
    old.swap(slots_);
    mask_ = capacity - 1;
    shift_ = 64 - std::countr_zero(capacity);
    size_ = 0;
    for (const Slot& entry : old) {
      if (entry.key != kEmpty) (*this)[entry.key] = entry.value;
    }
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  int shift_ = 64;
  size_t size_ = 0;
};

}  // namespace hexad::text
