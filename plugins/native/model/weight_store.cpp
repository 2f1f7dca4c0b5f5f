#include "plugins/native/model/weight_store.hpp"

#include <ATen/Functions.h>

#include "plugins/native/model/own_memory.hpp"

namespace hexad::native {
namespace {

constexpr int64_t kAlignment = 128;  // bytes; kernels read 16 at a time

int64_t elements(const modeling::WeightInfo& info) { return c10::multiply_integers(info.shape); }

}  // namespace

WeightStore::WeightStore(const modeling::ModelConfig& config, at::ScalarType dtype, at::Device device)
    : table_(modeling::weight_table(config)), dtype_(dtype), device_(device) {}

const WeightMap& WeightStore::places() {
  if (!places_.empty()) return places_;
  const int64_t step = kAlignment / static_cast<int64_t>(c10::elementSize(dtype_));
  std::vector<int64_t> offsets;
  int64_t size = 0;
  for (const modeling::WeightInfo& info : table_) {
    offsets.push_back(size);
    size += (elements(info) + step - 1) / step * step;
  }
  const at::Tensor memory = own_memory({size}, dtype_, device_, "the generator's weights need");
  for (size_t i = 0; i < table_.size(); ++i)
    places_[table_[i].hf_name] = memory.narrow(0, offsets[i], elements(table_[i])).view(table_[i].shape);
  return places_;
}

const WeightMap& WeightStore::settle(const WeightMap& weights) {
  for (const auto& [name, place] : places()) {
    const at::Tensor& from = weights.at(name);
    if (from.const_data_ptr() != place.const_data_ptr()) place.copy_(from);
  }
  return places_;
}

void WeightStore::release() { places_.clear(); }

}  // namespace hexad::native
