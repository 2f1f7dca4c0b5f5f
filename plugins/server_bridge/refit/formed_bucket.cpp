#include "plugins/server_bridge/refit/formed_bucket.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "modeling/refit/host_copy.hpp"

namespace hexad::bridge {

std::span<std::byte> FormedBucket::add(std::string name, std::vector<int64_t> shape, DLDataType type) {
  Weight& weight = own_.emplace_back();
  weight.name = std::move(name);
  weight.shape = std::move(shape);
  weight.offsets.assign(weight.shape.size(), 0);
  const auto dimensions = static_cast<int32_t>(weight.shape.size());
  weight.tensor = {nullptr, {kDLCPU, 0}, dimensions, type, weight.shape.data(), nullptr, 0};
  weight.memory.resize(refit::byte_size(weight.tensor));
  weight.tensor.data = weight.memory.data();
  slices_.push_back({weight.name.c_str(), &weight.tensor, weight.shape.data(), weight.offsets.data(),
                     weight.shape.data(), dimensions, type});
  return weight.memory;
}

const hexad_weight_list& FormedBucket::list() {
  std::ranges::stable_sort(slices_, std::greater(),
                           [](const hexad_weight_slice& slice) { return slice.tensor->dtype.bits; });
  list_ = {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, slices_.data(), static_cast<int64_t>(slices_.size())};
  return list_;
}

}  // namespace hexad::bridge
