// One pipeline stage (a model chunk of this rank): its blocks, the embedding on the first and the head on the last.
// Written out unit by unit (recompute.hpp): the graph of a unit's blocks ends at its input, and this file joins them.
#pragma once
#include <memory>
#include <vector>

#include "lib/model/layer_placement.hpp"
#include "modeling/backend/model_ends.hpp"
#include "modeling/moe/dispatch/expert_dispatcher.hpp"
#include "modeling/op/fp8/casts.hpp"
#include "modeling/op/linear.hpp"
#include "plugins/megatron/optimizer/gradient_buckets.hpp"
#include "plugins/megatron/routers.hpp"

namespace hexad::megatron {

// What the forward pass of one micro-batch leaves for its backward pass.
struct StageRecord {
  struct Part {
    at::Tensor input;   // leaf
    at::Tensor output;  // undefined when the layers will run again
  };
  std::vector<Part> parts;    // of each unit of layers
  modeling::HeadRecord head;  // last stage
};

class StageRunner {
 public:
  StageRunner(const Settings& settings, const Groups& groups, const model::Stage& stage, LocalWeights& weights,
              GradientBuckets& gradients, Routers& routers, modeling::Fp8Casts& casts);

  const model::Stage& stage() const { return stage_; }
  // Rows of hidden states between stages, of this rank.
  int64_t rows(const modeling::MicroBatch& batch) const;

  // hidden [rows, H] from the stage before (undefined on the first) -> to the stage after. With a record, what backward
  // needs is kept there.
  at::Tensor forward(const modeling::MicroBatch& batch, const at::Tensor& hidden, int32_t which, StageRecord* record);
  // The last stage's outputs [T] at the predicted token.
  modeling::LogprobResult outputs(const modeling::MicroBatch& batch, const at::Tensor& hidden, int32_t which,
                                  const modeling::LogprobOptions& options);
  // The last stage's loss, kept in the record for backward.
  void loss(const modeling::MicroBatch& batch, const at::Tensor& hidden, const modeling::LogprobOptions& options,
            const modeling::LossGradient& gradient, StageRecord& record);
  // Gradient of the stage's output (of the last stage: from its record) -> of its input; adds those of the weights.
  at::Tensor backward(const modeling::MicroBatch& batch, StageRecord& record, const at::Tensor& grad);

  // What a micro-batch without tokens does: its part in the collectives over data-parallel ranks. The loss is not run.
  void pass_forward(int32_t which);
  void pass_backward();
  // Adds how often backward says done() of each of this rank's weights.
  void count_places(std::vector<int64_t>& places) const;

 private:
  at::Tensor run_block(const modeling::MicroBatch& batch, int64_t layer, const at::Tensor& hidden, int32_t which);
  at::Tensor run_layers(const modeling::MicroBatch& batch, const model::Range& layers, at::Tensor hidden,
                        int32_t which);
  at::Tensor embed(const modeling::MicroBatch& batch, int32_t which);
  modeling::HeadWeights head_weights(int32_t which);
  // Units of the weight table: those of one of units_, and those of which the head takes weights.
  std::vector<std::string> layers_of(size_t unit) const;
  std::vector<std::string> head_units() const;
  void prefetch(int32_t which, size_t unit);  // one of units_; beyond them: nothing
  using Weights = std::vector<const LocalWeight*>;
  // The input of a part of the model, then its weights: what gradients are taken by.
  std::vector<at::Tensor> inputs(const at::Tensor& input, const Weights& weights);
  // Adds the gradients of `weights`, in the order of inputs(), and returns that of the input.
  at::Tensor add_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& input, const Weights& weights);
  void done(const Weights& weights);
  void offer(const Weights& weights, modeling::OfferedSums& sums);  // of matrices

  const Settings& settings_;
  modeling::TensorParallel tp_;
  modeling::ModelEnds ends_;
  model::Stage stage_;
  LocalWeights& weights_;
  GradientBuckets& gradients_;
  Routers& routers_;
  modeling::Fp8Casts& casts_;
  std::vector<LayerUnit> units_;                            // of the stage's layers
  std::vector<Weights> unit_weights_;                       // of each, those that learn
  Weights head_weights_;                                    // likewise; last stage
  modeling::Range experts_;                                 // of each layer, on this rank
  std::unique_ptr<modeling::ExpertDispatcher> dispatcher_;  // null: all experts are here
};

}  // namespace hexad::megatron
