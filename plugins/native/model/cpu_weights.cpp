#include "plugins/native/model/cpu_weights.hpp"

#include <ATen/Functions.h>

#include "modeling/family/transformer.hpp"
#include "modeling/family/weight_table.hpp"
#include "plugins/native/cpu/gemm.hpp"
#include "plugins/native/model/own_memory.hpp"

namespace hexad::native {
namespace {

template <typename T>
void pack_as(const at::Tensor& from, const at::Tensor& to) {
  cpu::pack(static_cast<const T*>(from.const_data_ptr()), from.size(0), from.size(1), static_cast<T*>(to.data_ptr()));
}

// Room for packed matrices, one after another: a pass reads them all, and in small pages a tenth of its time goes by
// the looking up of addresses.
class PackedMatrices {
 public:
  // For all matrices of `weights`, and `more` elements.
  PackedMatrices(const WeightMap& weights, int64_t more) {
    for (const auto& [name, weight] : weights) more += weight.dim() == 2 ? room(weight) : 0;
    memory_ = at::empty({more}, weights.at(modeling::kEmbeddingName).options());
    prefer_large_pages(memory_.data_ptr(), memory_.nbytes());
  }

  static int64_t room(const at::Tensor& weight) {
    return (cpu::packed_elements(weight.size(0), weight.size(1)) + kLine - 1) / kLine * kLine;
  }

  at::Tensor add(const at::Tensor& weight) {
    const at::Tensor from = weight.contiguous();
    const at::Tensor to = memory_.narrow(0, used_, cpu::packed_elements(from.size(0), from.size(1)));
    from.scalar_type() == at::kFloat ? pack_as<float>(from, to) : pack_as<cpu::BFloat16>(from, to);
    used_ += room(weight);
    return to;
  }

 private:
  static constexpr int64_t kLine = 64;  // elements: each matrix begins a cache line
  at::Tensor memory_;
  int64_t used_ = 0;
};

}  // namespace

CpuWeights::CpuWeights(const modeling::ModelConfig& config, WeightMap weights, const Shard& shard) {
  at::Tensor tied_head;  // where it is a part of the embedding
  if (config.tie_word_embeddings && shard.ranks > 1) {
    const modeling::Range rows = head_rows(config, shard);
    tied_head = weights.at(modeling::kEmbeddingName).narrow(0, rows.begin, rows.size());
  }
  PackedMatrices packed(weights, tied_head.defined() ? PackedMatrices::room(tied_head) : 0);
  if (tied_head.defined()) tied_head_ = packed.add(tied_head);
  const auto keep = [&](const std::string& name) {
    const at::Tensor weight = std::move(weights.at(name));
    return kept_[name] = weight.dim() == 2 ? packed.add(weight) : weight.to(at::kFloat).contiguous();
  };
  const auto matrix = [](const at::Tensor& tensor) -> const void* { return tensor.const_data_ptr(); };
  const auto vector = [](const at::Tensor& tensor) -> const float* {
    return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
  };
  // Of what is summed over the ranks.
  const auto once = [&](const at::Tensor& bias) { return shard.rank == 0 ? vector(bias) : nullptr; };
  embedding = matrix(keep(modeling::kEmbeddingName));
  head = tied_head_.defined()         ? matrix(tied_head_)
         : config.tie_word_embeddings ? embedding
                                      : matrix(keep(modeling::head_weight_name(config)));
  final_norm = vector(keep(modeling::kFinalNormName));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const modeling::LayerWeights w = modeling::layer_weights(config, i, keep);
    layers.push_back({.q = matrix(w.q_proj),
                      .k = matrix(w.k_proj),
                      .v = matrix(w.v_proj),
                      .o = matrix(w.o_proj),
                      .gate = matrix(w.gate_proj),
                      .up = matrix(w.up_proj),
                      .down = matrix(w.down_proj),
                      .input_norm = vector(w.input_norm),
                      .post_attention_norm = vector(w.post_attention_norm),
                      .q_norm = vector(w.q_norm),
                      .k_norm = vector(w.k_norm),
                      .q_bias = vector(w.q_bias),
                      .k_bias = vector(w.k_bias),
                      .v_bias = vector(w.v_bias),
                      .o_bias = once(w.o_bias),
                      .gate_bias = vector(w.gate_bias),
                      .up_bias = vector(w.up_bias),
                      .down_bias = once(w.down_bias)});
  }
}

WeightMap CpuWeights::unpacked(const std::vector<WeightPart>& parts, at::ScalarType dtype) const {
  WeightMap result;
  for (const WeightPart& part : parts) {
    const at::Tensor& kept = kept_.at(part.name);
    if (part.shape.size() == 2) {
      const at::Tensor panels = kept.view({-1, part.shape[1], cpu::kPanel}).transpose(1, 2);
      result[part.name] = panels.reshape({-1, part.shape[1]}).narrow(0, 0, part.shape[0]);
    } else {
      result[part.name] = kept.to(dtype);
    }
  }
  return result;
}

}  // namespace hexad::native
