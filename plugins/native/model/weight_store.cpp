#include "plugins/native/model/weight_store.hpp"

#include <ATen/Functions.h>

#include "plugins/native/model/fp8_rows.hpp"
#include "plugins/native/model/own_memory.hpp"

namespace hexad::native {
namespace {

constexpr int64_t kAlignment = 128;  // bytes; kernels read 16 at a time

}  // namespace

WeightStore::WeightStore(const modeling::ModelConfig& config, at::ScalarType dtype, at::Device device, bool fp8,
                         const Shard& shard)
    : device_(device) {
  std::vector<Entry> scales;
  for (const WeightPart& part : weight_parts(config, shard)) {
    const bool cast = fp8 && is_fp8_weight(part.name, part.shape);
    table_.push_back({part.name, part.shape, cast ? at::kFloat8_e4m3fn : dtype});
    if (cast) scales.push_back({scales_name(part.name), {part.shape[0]}, at::kFloat, part.name});
  }
  table_.insert(table_.end(), scales.begin(), scales.end());
}

const WeightMap& WeightStore::places() {
  if (!places_.empty()) return places_;
  const auto bytes = [](const Entry& entry) {
    return c10::multiply_integers(entry.shape) * static_cast<int64_t>(c10::elementSize(entry.dtype));
  };
  std::vector<int64_t> offsets;
  int64_t size = 0;
  for (const Entry& entry : table_) {
    offsets.push_back(size);
    size += (bytes(entry) + kAlignment - 1) / kAlignment * kAlignment;
  }
  const at::Tensor memory = own_memory({size}, at::kByte, device_, "the generator's weights need");
  for (size_t i = 0; i < table_.size(); ++i) {
    const Entry& entry = table_[i];
    places_[entry.name] = memory.narrow(0, offsets[i], bytes(entry)).view(entry.dtype).view(entry.shape);
  }
  return places_;
}

const WeightMap& WeightStore::settle(const WeightMap& weights) {
  for (const Entry& entry : table_) {
    const auto is_wide = [&](const std::string& name) { return weights.at(name).scalar_type() != at::kFloat8_e4m3fn; };
    if (!entry.scales_of.empty() && is_wide(entry.scales_of)) continue;  // come of the cast
    const at::Tensor &from = weights.at(entry.name), &place = places().at(entry.name);
    if (entry.dtype == at::kFloat8_e4m3fn && is_wide(entry.name)) {
      to_fp8_rows(from.to(place.device()), {place, places_.at(scales_name(entry.name))});
    } else if (from.const_data_ptr() != place.const_data_ptr()) {
      place.copy_(from);
    }
  }
  return places_;
}

void WeightStore::release() { places_.clear(); }

}  // namespace hexad::native
