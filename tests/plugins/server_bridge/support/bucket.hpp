// A bucket of an update with one weight [2, 3] of equal f32 numbers.
#pragma once
#include <hexad/abi.h>

#include <string>
#include <vector>

namespace bridge_test {

class Bucket {
 public:
  explicit Bucket(std::string name, float value = 1, DLDevice device = {kDLCPU, 0}) : name_(std::move(name)) {
    data_.assign(6, value);
    tensor_ = {data_.data(), device, 2, {kDLFloat, 32, 1}, shape_, nullptr, 0};
    slice_ = {name_.c_str(), &tensor_, shape_, offsets_, shape_, 2, tensor_.dtype};
    list_ = {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice_, 1};
  }
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  const hexad_weight_list& list() const { return list_; }

 private:
  std::string name_;
  std::vector<float> data_;
  int64_t shape_[2] = {2, 3}, offsets_[2] = {0, 0};
  DLTensor tensor_{};
  hexad_weight_slice slice_{};
  hexad_weight_list list_{};
};

}  // namespace bridge_test
