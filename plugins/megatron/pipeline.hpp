// Runs a schedule: the events of modeling/layout/pipeline_schedule.hpp, replayed over this rank's stages.
#pragma once
#include <optional>
#include <vector>

#include "modeling/layout/pipeline_schedule.hpp"
#include "modeling/parallel/stage_links.hpp"
#include "plugins/megatron/stage.hpp"

namespace hexad::megatron {

// One micro-batch; nothing for one that only fills up a group of the schedule.
using MicroBatches = std::vector<std::optional<modeling::MicroBatch>>;

class Pipeline {
 public:
  Pipeline(const Settings& settings, const Groups& groups, const model::LayerPlacement& placement,
           LocalWeights& weights, GradientBuckets& gradients, Routers& routers, modeling::Fp8Casts& casts,
           at::Device device);

  // Does this rank hold the last stage?
  bool has_loss() const;

  // The outputs of every micro-batch, on the ranks that hold the last stage.
  using Outputs = std::function<void(int64_t microbatch, const modeling::LogprobResult& outputs)>;
  void forward(const MicroBatches& batches, int32_t which, const modeling::LogprobOptions& options,
               const Outputs& outputs);
  // Forward and backward; gradients begin anew and are whole after gradients.finish(). `loss` is called on the ranks
  // that hold the last stage.
  using Loss = std::function<modeling::LogprobResult(int64_t microbatch, const modeling::LogprobResult& outputs)>;
  void train(const MicroBatches& batches, const modeling::LogprobOptions& options, const Loss& loss);

 private:
  modeling::layout::PipelineSchedule schedule(size_t microbatches, bool forward_only) const;
  modeling::StageLinks links(const MicroBatches& batches) const;
  StageRunner& stage(const modeling::layout::PipelineUnit& unit) { return stages_[static_cast<size_t>(unit.chunk)]; }

  const Settings& settings_;
  const Groups& groups_;
  GradientBuckets& gradients_;
  std::vector<int64_t> places_;  // by weight: how often a micro-batch's backward pass is done with it
  at::Device device_;
  std::vector<StageRunner> stages_;
};

}  // namespace hexad::megatron
