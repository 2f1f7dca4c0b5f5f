// Places in one block of memory. The kit hands out device memory from one block that it allocates once, because
// allocating with CUDA may wait for the device.
#pragma once
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>

namespace hexad::verify {

// First fit over offsets [0, size), in units of 256 bytes. One thread at a time.
class DeviceArena {
 public:
  explicit DeviceArena(size_t size) { free_[0] = size / kUnit * kUnit; }

  // The offset of `bytes` free bytes; nothing if there is no such place.
  std::optional<size_t> take(size_t bytes) {
    if (bytes > SIZE_MAX - kUnit) return std::nullopt;
    const size_t wanted = bytes == 0 ? kUnit : (bytes + kUnit - 1) / kUnit * kUnit;
    for (auto place = free_.begin(); place != free_.end(); ++place) {
      if (place->second < wanted) continue;
      const auto [offset, room] = *place;
      free_.erase(place);
      if (room > wanted) free_[offset + wanted] = room - wanted;
      taken_[offset] = wanted;
      return offset;
    }
    return std::nullopt;
  }

  // Gives a taken place back, joined with the free ones beside it. False if it was not taken.
  bool give(size_t offset) {
    const auto taken = taken_.find(offset);
    if (taken == taken_.end()) return false;
    auto place = free_.emplace(offset, taken->second).first;
    taken_.erase(taken);
    const auto next = std::next(place);
    if (next != free_.end() && place->first + place->second == next->first) {
      place->second += next->second;
      free_.erase(next);
    }
    if (place == free_.begin()) return true;
    const auto before = std::prev(place);
    if (before->first + before->second != place->first) return true;
    before->second += place->second;
    free_.erase(place);
    return true;
  }

 private:
  static constexpr size_t kUnit = 256;
  std::map<size_t, size_t> free_, taken_;  // offset, bytes
};

}  // namespace hexad::verify
