// The weights that this rank holds: the slices of its stages' weights, end to end in a buffer (experts behind, in one of
// their own), with their gradients in buffers of the same layout.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/layout/buffer_layout.hpp"
#include "modeling/layout/layer_placement.hpp"
#include "modeling/parallel/tensor_plan.hpp"
#include "plugins/megatron/groups.hpp"
#include "plugins/megatron/settings.hpp"

namespace hexad::megatron {

struct LocalWeight {
  modeling::WeightInfo info;  // whole shape
  modeling::TensorPart part;
  bool expert = false;        // of an expert, which lies on the expert grid
  bool tied_copy = false;     // the last stage's copy of a tied embedding, which the first one owns
  modeling::Range in_buffer;  // elements

  // Norms and checkpoints take each element from one rank.
  bool owned() const { return part.copy == 0 && !tied_copy; }
};

// What the rank at these coordinates holds of a weight; absent: nothing, because it is another rank's expert.
std::optional<modeling::TensorPart> part_at(const Settings& settings, const modeling::layout::RankCoordinates& at,
                                            const modeling::WeightInfo& info);

// Parameters that are reduced and sharded over the same ranks: those of the dense grid, or the experts.
struct WeightBuffer {
  modeling::layout::BufferLayout layout;
  int64_t begin = 0;       // where it lies in the flat tensors
  modeling::Group owners;  // the ranks that hold the same parameters
};

// Does a rank at (pipeline rank, chunks) hold the weight? A tied embedding lies on the first and on the last stage.
bool stage_holds(const modeling::ModelConfig& config, const modeling::layout::Stage& stage,
                 const modeling::WeightInfo& info);

class LocalWeights {
 public:
  LocalWeights(const Settings& settings, const Groups& groups, const modeling::layout::LayerPlacement& placement,
               at::Device device);

  const std::vector<modeling::WeightInfo>& table() const { return table_; }  // of the whole model
  const std::vector<LocalWeight>& weights() const { return weights_; }
  const std::vector<WeightBuffer>& buffers() const { return buffers_; }
  const WeightBuffer& buffer_of(const LocalWeight& weight) const;
  // Null if this rank does not hold it.
  const LocalWeight* find(const std::string& name) const;

  // Flat, in the compute dtype.
  at::Tensor& parameters() { return parameters_; }
  // Flat fp32; made (zeros) on first use.
  at::Tensor& gradients();
  void drop_gradients() { gradients_ = at::Tensor(); }

  // The weight's slice of a flat tensor laid out like parameters().
  at::Tensor slice_of(const at::Tensor& flat, const LocalWeight& weight) const;

  // Leaves that require gradients, of the current weights or a kept copy of them.
  using Leaves = std::map<std::string, at::Tensor>;
  const Leaves& leaves(int32_t which);
  void add_gradient(const LocalWeight& weight, const at::Tensor& grad);
  // Sums what tensor-parallel ranks have seen parts of, and the two halves of a tied embedding's gradient.
  void sum_partial_gradients();

  // A copy in the compute dtype on the host, under HEXAD_WEIGHTS_REFERENCE or _SNAPSHOT.
  void keep(int32_t which);
  // Replaces weights: fill(weight) returns the slice, in any dtype.
  void set(int32_t which, const std::function<at::Tensor(const LocalWeight&)>& fill);
  // The flat weights of `which`; throws sdk::Error when they were never kept.
  const at::Tensor& flat(int32_t which) const;
  int64_t kept_bytes() const;

 private:
  Leaves bind(const at::Tensor& flat) const;
  static int32_t kept_kind(int32_t which);

  const Settings& settings_;
  const Groups& groups_;
  at::Device device_;
  std::vector<modeling::WeightInfo> table_;
  std::vector<LocalWeight> weights_;
  std::unordered_map<std::string, size_t> index_;  // of weights_, by name
  std::vector<WeightBuffer> buffers_;
  at::Tensor parameters_, gradients_;
  std::map<int32_t, at::Tensor> kept_;
  Leaves current_, other_;
  int32_t other_which_ = -1;
};

}  // namespace hexad::megatron
