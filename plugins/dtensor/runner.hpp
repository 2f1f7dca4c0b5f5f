// The schedule of FSDP: which unit is gathered, computed, freed and reduced when. Written out unit by unit instead of
// hooked into autograd: each unit's graph ends at its inputs, and this file joins them.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "modeling/backend/model_ends.hpp"
#include "modeling/backend/router_replay.hpp"
#include "modeling/family/transformer.hpp"
#include "modeling/moe/dispatch/expert_dispatcher.hpp"
#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

struct RunnerOptions {
  bool activation_checkpointing = false;  // keep each block's input alone, and run the block again in the backward pass
  modeling::TensorParallel tp = {};       // ranks that share every layer
  modeling::Group context = {};           // ranks that share the tokens
  bool gather_tokens = false;             // where experts are shared out (Settings)
  modeling::RouterReplay* replay = nullptr;  // null: routers choose in every pass
  modeling::Fp8 fp8 = modeling::Fp8::off;    // of linears
  modeling::Fp8Casts* fp8_casts = nullptr;   // LinearOptions::fp8_casts
  bool batch_invariant = false;              // LinearOptions::batch_invariant
};

class Runner {
 public:
  Runner(ShardedModel& model, const RunnerOptions& options);

  // Per-token results [T] fp32 at the predicted token (0 at each sequence's start), under weights `which`.
  // A null batch computes nothing and takes part in the collectives.
  modeling::LogprobResult forward(const modeling::MicroBatch* batch, int32_t which,
                                  const modeling::LogprobOptions& options);

  // Forward and backward; the gradients are summed over ranks into the units' grad(), those that stay with the `last`
  // micro-batch of the call. A null batch contributes nothing.
  void train(const modeling::MicroBatch* batch, const modeling::LogprobOptions& options,
             const modeling::LossGradient& loss, bool last);
  // After an exception out of forward or train: waits for what is under way, so that the next call starts clean.
  void abandon();

 private:
  // What the forward pass of a block leaves for its backward pass.
  struct BlockRecord {
    modeling::Residual input;   // leaves; the delta's values are gone unless the block will run again
    modeling::Residual output;  // undefined when the block will run again
  };

  at::Tensor embed(const modeling::MicroBatch* batch, int32_t which);
  modeling::Residual run_block(const modeling::MicroBatch& batch, int64_t layer, const modeling::Residual& stream,
                               int32_t which);
  modeling::HeadWeights head_weights() const;
  std::vector<BlockRecord> forward_blocks(const modeling::MicroBatch* batch, modeling::Residual& stream);
  at::Tensor backward_head(const modeling::MicroBatch* batch, const at::Tensor& hidden,
                           const modeling::LogprobOptions& options, const modeling::LossGradient& loss, bool last);
  // From the gradients of what the block made to those of what it took in.
  modeling::Residual backward_block(const modeling::MicroBatch& batch, int64_t layer, BlockRecord& record,
                                    const modeling::Residual& grads);
  void reduce(ShardedUnit& unit, bool last);

  void unshard(ShardedUnit& unit, int32_t which);
  void prefetch(ShardedUnit& unit, int32_t which);
  void unshard_block(int64_t layer, int32_t which);
  void prefetch_block(int64_t layer, int32_t which);
  void prefetch_after(int64_t layer, int32_t which);  // the next block, or the head
  void reshard_block(int64_t layer);

  ShardedModel& model_;
  RunnerOptions options_;
  modeling::ModelEnds ends_;
  std::optional<modeling::Range> experts_;                  // of each layer, on this rank; absent: all
  std::unique_ptr<modeling::ExpertDispatcher> dispatcher_;  // null: they see this rank's tokens alone
  ShardedUnit* reducing_ = nullptr;                         // its reduce-scatter is under way
};

}  // namespace hexad::dtensor
