// What lies before the first block and behind the last one, for one micro-batch: the embedding, and the head with the
// loss. Both are cut over the tensor-parallel ranks by the vocabulary. The caller owns the weights.
#pragma once
#include <functional>
#include <vector>

#include "modeling/backend/micro_batch.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

namespace hexad::modeling {

// This rank's rows of the vocabulary: `logits` [V / tp, H]; or the reward head's [1, H].
struct HeadWeights {
  at::Tensor norm, logits;
};

// What the head's forward pass leaves for its backward pass.
struct HeadRecord {
  at::Tensor input;              // leaf
  LogprobResult outputs, grads;  // of this rank's tokens
};

// Gradient of the loss by each output [T], as they were given; undefined: none.
using LossGradient = std::function<LogprobResult(const LogprobResult& outputs)>;

class ModelEnds {
 public:
  // `context`: the ranks that share the tokens.
  ModelEnds(const ModelConfig& config, const TensorParallel& tp, const Group& context);

  // weight: this rank's rows of the embedding -> hidden [rows of this rank, H]; without a graph.
  at::Tensor embed(const MicroBatch& batch, const at::Tensor& weight) const;
  // Adds the gradient of the embedding's rows to `sum`, of the weight's shape or in parts (op/linear.hpp).
  void embed_backward(const MicroBatch& batch, const at::Tensor& grad, at::Tensor sum) const;

  // hidden [rows of this rank, H] -> [T] at the predicted token; without a graph.
  LogprobResult outputs(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights,
                        const LogprobOptions& options) const;
  HeadRecord loss(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights,
                  const LogprobOptions& options, const LossGradient& gradient) const;

 private:
  // Of this rank's tokens, at the predicting position.
  LogprobResult head(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights,
                     const LogprobOptions& options) const;
  // Of all sequences, on every rank.
  LogprobResult scores(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights) const;

  const ModelConfig& config_;
  TensorParallel tp_;
  Group context_;
  VocabShard vocab_;
};

// Gradients by `inputs` of the outputs that have one; undefined where no output depends on an input.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& grads,
                                  const std::vector<at::Tensor>& inputs);
std::vector<at::Tensor> head_gradients(const HeadRecord& record, const std::vector<at::Tensor>& inputs);

}  // namespace hexad::modeling
