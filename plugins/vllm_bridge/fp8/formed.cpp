#include "modeling/refit/host_copy.hpp"
#include "modeling/refit/weight_names.hpp"
#include "plugins/vllm_bridge/fp8/cast.hpp"
#include "plugins/vllm_bridge/fp8/recipe.hpp"

namespace hexad::vllm::fp8 {
namespace {

constexpr DLDataType kValues{kDLFloat8_e4m3fn, 8, 1}, kScales{kDLFloat, 32, 1}, kExponents{kDLUInt, 8, 1};

Matrix matrix_of(const hexad_weight_slice& slice, std::span<const std::byte> bytes) {
  const DLDataType type = slice.tensor->dtype;
  const bool known =
      (type.code == kDLBfloat && type.bits == 16) || (type.code == kDLFloat && (type.bits == 16 || type.bits == 32));
  if (!known || slice.ndim != 2)
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "weight update: %s is to be quantised to FP8, and has %d dimensions of a type of %d bits; wanted a matrix "
        "in bf16, fp16 or fp32",
        slice.name, slice.ndim, type.bits);
  return {bytes.data(), type, slice.shape[0], slice.shape[1]};
}

template <typename T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

void add_quantised(bridge::FormedBucket& to, const std::string& name, const Matrix& x, const Recipe& recipe) {
  const auto values = as<uint8_t>(to.add(name, {x.rows, x.columns}, kValues));
  if (!recipe.mx) {
    const std::vector<int64_t> shape = {blocks_of(x.rows), blocks_of(x.columns)};
    return cast_blocks(x, recipe.powers, values, as<float>(to.add(name + "_scale_inv", shape, kScales)));
  }
  if (x.columns % kStrip != 0)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: %s has %lld columns, wanted a multiple of 32 for MX (is_mx)",
              name.c_str(), static_cast<long long>(x.columns));
  cast_strips(x, values, as<uint8_t>(to.add(name + "_scale", {x.rows, x.columns / kStrip}, kExponents)));
}

}  // namespace

std::unique_ptr<bridge::FormedBucket> formed(const sdk::Call& call, const Recipe& recipe,
                                             const hexad_weight_list& bucket) {
  auto result = std::make_unique<bridge::FormedBucket>();
  std::vector<std::byte> memory;
  for (const hexad_weight_slice* slice : refit::in_order(bucket)) {
    if (!recipe.layers.weights.contains(slice->name)) {
      result->keep(*slice);
      continue;
    }
    const Matrix x = matrix_of(*slice, refit::on_host(call, *slice->tensor, memory));
    add_quantised(*result, slice->name, x, recipe);
  }
  return result;
}

}  // namespace hexad::vllm::fp8
