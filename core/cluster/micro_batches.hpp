// The micro-batches of a command, what a backend makes of them, and what a loss says of that.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "core/cluster/tensor_view.hpp"
#include "core/cluster/worker/state.hpp"

namespace hexad::cluster {

struct MicroBatches {
  std::deque<BatchView> views;
  std::vector<const hexad_batch*> pointers;
};

// The rows of `batch` as `list` deals them, with the columns that the backend wants.
MicroBatches micro_batches(const data::Batch& batch, std::span<const protocol::MicroBatch> list,
                           const plugin::BackendPlugin& backend);

// "sequence_scores" has a value a sample, every other output one a token.
data::Axis axis_of_output(const std::string& name);

// Host memory for the named outputs of every micro-batch, as forward wants it.
class ForwardOutputs {
 public:
  ForwardOutputs(const MicroBatches& parts, const std::vector<std::string>& names);

  const std::vector<hexad_named_tensor*>& get() const { return pointers_; }
  std::span<const hexad_named_tensor> of(size_t part) const { return tensors_[part]; }
  const data::Tensor& at(size_t part, size_t name) const { return views_[part * count_ + name].tensor(); }

 private:
  size_t count_;
  std::deque<TensorView> views_;  // by micro-batch, then by name
  std::deque<std::vector<hexad_named_tensor>> tensors_;
  std::vector<hexad_named_tensor*> pointers_;
};

// What the loss can use of what this backend can make; what it must have and the backend cannot make was refused at
// start.
std::vector<std::string> loss_outputs(const WorkerState& state);
plugin::LossPlugin& need_loss(const WorkerState& state, const char* command);
// Of a micro-batch under the global normalizers of its batch.
plugin::LossShape loss_shape(const protocol::LossBatch& whole, const BatchView& part);
// Adds its metrics to those of the command, and returns the loss.
double add_loss_metrics(WorkerState& state, const plugin::LossValue& value);

}  // namespace hexad::cluster
