#include "plugins/native/model/weights.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>
#include <hexad/services.hpp>

#include "modeling/error.hpp"
#include "modeling/weight/finite.hpp"
#include "modeling/weight/safetensors_reader.hpp"

namespace hexad::native {
namespace {

int64_t elements(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string text_of(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

[[noreturn]] void refuse(const hexad_weight_slice& slice, const std::string& reason) {
  sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: %s: %s", slice.name, reason.c_str());
}

at::ScalarType scalar_type(const hexad_weight_slice& slice) {
  const DLDataType type = slice.tensor->dtype;
  if (type.lanes == 1) {
    if (type.code == kDLFloat && type.bits == 32) return at::kFloat;
    if (type.code == kDLFloat && type.bits == 16) return at::kHalf;
    if (type.code == kDLFloat && type.bits == 64) return at::kDouble;
    if (type.code == kDLBfloat && type.bits == 16) return at::kBFloat16;
  }
  refuse(slice, fmt::format("dtype with code {} and {} bits; wanted float32, float16, bfloat16 or float64", type.code,
                            type.bits));
}

// The slice's data as a tensor that borrows it.
at::Tensor view_of(const hexad_weight_slice& slice) {
  const DLTensor& tensor = *slice.tensor;
  const std::vector<int64_t> shape(slice.shape, slice.shape + slice.ndim);
  if (elements({tensor.shape, static_cast<size_t>(tensor.ndim)}) != elements(shape)) {
    refuse(slice, fmt::format("its data has {} elements, its shape {}",
                              elements({tensor.shape, static_cast<size_t>(tensor.ndim)}), text_of(shape)));
  }
  const bool cpu = tensor.device.device_type == kDLCPU || tensor.device.device_type == kDLCUDAHost;
  const at::Device device = cpu ? at::Device(at::kCPU) : at::Device(at::kCUDA, int8_t(tensor.device.device_id));
  return at::from_blob(HEXAD_DATA(char, &tensor), shape, at::TensorOptions(scalar_type(slice)).device(device));
}

// The elements of dimension `d` that a slice and a part of the weight have in common.
modeling::Range overlap(const hexad_weight_slice& slice, const WeightPart& part, int32_t d) {
  const auto i = static_cast<size_t>(d);
  const int64_t begin = std::max(slice.offsets[d], part.offsets[i]);
  return {begin, std::max(begin, std::min(slice.offsets[d] + slice.shape[d], part.offsets[i] + part.shape[i]))};
}

}  // namespace

WeightMap load_weights(const std::filesystem::path& dir, const modeling::ModelConfig& config, at::ScalarType dtype,
                       at::Device device, WeightMap places, const Shard& shard) {
  const modeling::SafetensorsReader reader = modeling::open_weights(dir, config, modeling::weight_table(config));
  WeightMap weights = std::move(places);
  for (const WeightPart& part : weight_parts(config, shard)) {
    at::Tensor stored = reader.tensor(part.name);
    for (size_t d = 0; d < part.shape.size(); ++d)
      stored = stored.narrow(static_cast<int64_t>(d), part.offsets[d], part.shape[d]);
    modeling::require_finite(stored, part.name, reader.entries().at(part.name).file);
    at::Tensor& weight = weights[part.name];
    if (weight.defined() && weight.scalar_type() == at::kFloat8_e4m3fn) {
      to_fp8_rows(stored.to(at::TensorOptions(dtype).device(device)).contiguous(),
                  {weight, weights.at(scales_name(part.name))});
    } else if (weight.defined()) {
      weight.copy_(stored);
    } else {
      weight = stored.to(at::TensorOptions(dtype).device(device), false, /*copy=*/true);
    }
  }
  return weights;
}

WeightUpdate::WeightUpdate(const modeling::ModelConfig& config, at::ScalarType dtype, at::Device device,
                           WeightMap places, bool fp8, const Shard& shard)
    : tied_(config.tie_word_embeddings), dtype_(dtype), device_(device) {
  for (const WeightPart& part : weight_parts(config, shard)) {
    const at::Tensor place = places[part.name];
    if (fp8 && is_fp8_weight(part.name, part.shape)) {
      weights_[part.name] = {{}, part, elements(part.shape), true, {place, places[scales_name(part.name)]}};
    } else {
      weights_[part.name] = {place, part, elements(part.shape)};
    }
  }
}

void WeightUpdate::add(const hexad_weight_list& bucket) {
  for (int64_t i = 0; i < bucket.count; ++i) add(bucket.slices[i]);
}

void WeightUpdate::add(const hexad_weight_slice& slice) {
  if (tied_ && std::string(slice.name) == "lm_head.weight") return;  // the embedding's twin
  const auto found = weights_.find(slice.name);
  if (found == weights_.end()) refuse(slice, "the model has no such weight");
  Arriving& weight = found->second;
  const std::vector<int64_t> whole(slice.global_shape, slice.global_shape + slice.ndim);
  if (whole != weight.part.global_shape) {
    refuse(slice, fmt::format("shape {}, the model's is {}", text_of(whole), text_of(weight.part.global_shape)));
  }
  for (int32_t d = 0; d < slice.ndim; ++d) {
    if (slice.offsets[d] < 0 || slice.shape[d] < 0 || slice.offsets[d] + slice.shape[d] > whole[d]) {
      refuse(slice, fmt::format("a slice of {} elements from {} on lies outside of dimension {} of {}", slice.shape[d],
                                slice.offsets[d], d, text_of(whole)));
    }
  }
  if (!slice.tensor) refuse(slice, "a slice without data");
  at::Tensor source = view_of(slice);
  for (int32_t d = 0; d < slice.ndim; ++d) {
    const modeling::Range common = overlap(slice, weight.part, d);
    source = source.narrow(d, std::min(common.begin - slice.offsets[d], slice.shape[d]), common.size());
  }
  if (source.numel() > weight.missing) refuse(slice, "sent more than once");
  if (source.numel() == 0) return;
  if (weight.fp8 && source.numel() == elements(weight.part.shape)) {  // whole: no copy of it is kept
    cast(weight, source.to(at::TensorOptions(dtype_).device(device_)).contiguous());
    return;
  }
  if (!weight.tensor.defined()) {
    weight.tensor = at::empty(weight.part.shape, at::TensorOptions(dtype_).device(device_));
  }
  at::Tensor target = weight.tensor;
  for (int32_t d = 0; d < slice.ndim; ++d) {
    const modeling::Range common = overlap(slice, weight.part, d);
    target = target.narrow(d, common.begin - weight.part.offsets[static_cast<size_t>(d)], common.size());
  }
  target.copy_(source);
  weight.missing -= source.numel();
  if (weight.fp8 && weight.missing == 0) cast(weight, std::exchange(weight.tensor, {}));
}

void WeightUpdate::cast(Arriving& weight, const at::Tensor& whole) {
  if (!weight.rows.values.defined()) weight.rows = empty_fp8_rows(weight.part.shape[0], weight.part.shape[1], device_);
  to_fp8_rows(whole, weight.rows);
  weight.missing = 0;
}

WeightMap WeightUpdate::finish() {
  std::vector<std::string> missing;
  WeightMap result;
  for (auto& [name, weight] : weights_) {
    if (weight.missing > 0) missing.push_back(name);
    result[name] = weight.fp8 ? weight.rows.values : weight.tensor;
    if (weight.fp8) result[scales_name(name)] = weight.rows.scales;
  }
  if (missing.empty()) return result;
  const size_t count = missing.size();
  missing.resize(std::min<size_t>(count, 5));
  sdk::fail(HEXAD_FAILED_PRECONDITION, "weight update: %zu of %zu weights did not arrive in full: %s%s", count,
            weights_.size(), fmt::format("{}", fmt::join(missing, ", ")).c_str(), count > 5 ? ", ..." : "");
}

}  // namespace hexad::native
