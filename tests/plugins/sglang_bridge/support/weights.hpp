// Weights in every type, as a backend gives them to the bridge.
#pragma once
#include <random>
#include <utility>

#include "tests/plugins/sglang_bridge/support/harness.hpp"

namespace sglang_test {

using Weights = hexad::sglang::stand_in::WeightGroups::Weights;

inline DLDataType type_of(const std::string& torch) {
  if (torch == "float32") return {kDLFloat, 32, 1};
  if (torch == "float16") return {kDLFloat, 16, 1};
  if (torch == "bfloat16") return {kDLBfloat, 16, 1};
  return {kDLFloat8_e4m3fn, 8, 1};
}

// Weights with bytes of every value, NaN among them.
inline Weights some_weights(uint64_t seed) {
  std::mt19937_64 random(seed);
  Weights weights = {{"model.norm.weight", {"float32", {7}, ""}},
                     {"model.layers.0.mlp.down_proj.weight", {"bfloat16", {5, 3}, ""}},
                     {"model.layers.1.mlp.down_proj.weight", {"float16", {2, 3, 4}, ""}},
                     {"model.layers.1.scale", {"float8_e4m3fn", {9}, ""}},
                     {"model.embed_tokens.weight", {"float32", {301, 64}, ""}},
                     {"model.bias", {"float32", {}, ""}}};
  for (auto& [name, weight] : weights) {
    size_t bytes = static_cast<size_t>(type_of(weight.dtype).bits) / 8;
    for (const int64_t size : weight.shape) bytes *= static_cast<size_t>(size);
    while (weight.bytes.size() < bytes) weight.bytes += static_cast<char>(random());
  }
  return weights;
}

// As the ABI has them.
class List {
 public:
  explicit List(Weights weights, DLDevice device = {kDLCPU, 0}) : weights_(std::move(weights)), offsets_(8, 0) {
    tensors_.reserve(weights_.size());
    for (auto& [name, weight] : weights_) {
      const auto ndim = static_cast<int32_t>(weight.shape.size());
      tensors_.push_back({weight.bytes.data(), device, ndim, type_of(weight.dtype), weight.shape.data(), nullptr, 0});
      slices_.push_back({name.c_str(), &tensors_.back(), weight.shape.data(), offsets_.data(), weight.shape.data(),
                         ndim, tensors_.back().dtype});
    }
    list_ = {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, slices_.data(), static_cast<int64_t>(slices_.size())};
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  const hexad_weight_list& list() const { return list_; }

 private:
  Weights weights_;
  std::vector<int64_t> offsets_;
  std::vector<DLTensor> tensors_;
  std::vector<hexad_weight_slice> slices_;
  hexad_weight_list list_{};
};

inline void update(Harness& bridge, int64_t version, const Weights& weights) {
  bridge->update_begin(bridge.service(), version);
  bridge->update_bucket(bridge.service(), List(weights, bridge.context().device).list());
  bridge->update_end(bridge.service(), true);
}

// What an update fails with, if no server takes it.
inline std::string error_of(Harness& bridge, int64_t version, const Weights& weights) {
  try {
    update(bridge, version, weights);
  } catch (const hexad::sdk::Error& error) {
    return error.what();
  }
  return "";
}

inline void await(Harness& bridge, const std::vector<const FakeSglang*>& servers) {
  bridge.run(many(4));
  for (const FakeSglang* server : servers)
    while (!LogLines::all().has(takes_requests(*server))) bridge.poll(10);
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace sglang_test
