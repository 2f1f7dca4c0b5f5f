// Runs a schedule: the events of modeling/layout/pipeline_schedule.hpp, replayed over this rank's stages.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "modeling/layout/pipeline_schedule.hpp"
#include "plugins/megatron/stage.hpp"

namespace hexad::megatron {

// One micro-batch; nothing for one that only fills up a group of the schedule.
using MicroBatches = std::vector<std::optional<modeling::MicroBatch>>;

class Pipeline {
 public:
  Pipeline(const Settings& settings, const Groups& groups, const modeling::layout::LayerPlacement& placement,
           LocalWeights& weights, at::Device device);

  // Does this rank hold the last stage?
  bool has_loss() const;

  // The outputs of every micro-batch, on the ranks that hold the last stage.
  using Outputs = std::function<void(int64_t microbatch, const modeling::LogprobResult& outputs)>;
  void forward(const MicroBatches& batches, int32_t which, const modeling::LogprobOptions& options,
               const Outputs& outputs);
  // Forward and backward; gradients are added to the weights'. `loss` is called on the ranks that hold the last stage.
  using Loss = std::function<modeling::LogprobResult(int64_t microbatch, const modeling::LogprobResult& outputs)>;
  void train(const MicroBatches& batches, const modeling::LogprobOptions& options, const Loss& loss);

 private:
  using Unit = std::pair<int32_t, int32_t>;  // chunk, micro-batch
  // One run: what lies between events.
  struct Run {
    const MicroBatches& batches;
    std::map<Unit, at::Tensor> inputs, outputs, output_grads, input_grads;
    std::map<Unit, StageRecord> records;
  };
  modeling::layout::PipelineSchedule schedule(size_t microbatches, bool forward_only) const;
  void exchange(Run& run, const modeling::layout::PipelineEvent& event);
  at::Tensor hidden_of(const Run& run, const Unit& unit) const;
  // The stage's place in the whole pipeline.
  int64_t stage_index(const Unit& unit) const { return unit.first * ranks() + groups_.at.pp; }
  int64_t ranks() const { return settings_.sizes.pipeline; }

  const Settings& settings_;
  const Groups& groups_;
  at::Device device_;
  std::vector<StageRunner> stages_;
};

}  // namespace hexad::megatron
