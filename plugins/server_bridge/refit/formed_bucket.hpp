// A bucket of weights in another form than the backend's: some are borrowed from its bucket, others are in host memory
// of this one.
#pragma once
#include <hexad/services.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace hexad::bridge {

class FormedBucket {
 public:
  FormedBucket() = default;
  FormedBucket(const FormedBucket&) = delete;
  FormedBucket& operator=(const FormedBucket&) = delete;

  void keep(const hexad_weight_slice& slice) { slices_.push_back(slice); }
  // A whole weight, to be written to the memory that it gives.
  std::span<std::byte> add(std::string name, std::vector<int64_t> shape, DLDataType type);
  // Of all so far, those with the largest elements first, as files and packed transfers want them; until the next one
  // is added.
  const hexad_weight_list& list();

 private:
  struct Weight {
    std::string name;
    std::vector<int64_t> shape, offsets;
    std::vector<std::byte> memory;
    DLTensor tensor{};
  };
  std::deque<Weight> own_;  // slices refer to them
  std::vector<hexad_weight_slice> slices_;
  hexad_weight_list list_{};
};

}  // namespace hexad::bridge
