// One thing that a pipeline rank does: compute a unit, exchange tensors with its neighbours, steer the reductions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hexad::modeling::layout {

// One micro-batch through one model chunk (virtual stage) of a rank.
struct PipelineUnit {
  int32_t chunk = 0, microbatch = 0;
  bool operator==(const PipelineUnit&) const = default;
};

struct PipelineEvent {
  enum class Kind {
    forward,
    backward,
    // Sends and receives that are issued at once. Receives are labelled with the unit of this rank that they feed,
    // sends with the unit that made them. All may be absent: nothing to do at this point. An executor whose channels do
    // not tell the two directions apart must number them: with two ranks, next and previous are one peer.
    exchange,
    hold_gradients,     // the backwards that follow only accumulate
    release_gradients,  // the backwards that follow start the reduction of what they complete
    gather_parameters,  // start the parameter all-gather of unit.chunk
    reduce_gradients,   // start the gradient reduction of unit.chunk
    finalize            // finish reductions; end of a training step
  };
  Kind kind;
  PipelineUnit unit = {};              // forward, backward; of gather_ and reduce_ the chunk alone
  int32_t position = 0;                // forward, backward: how many of that kind this rank ran before
  std::optional<bool> recompute = {};  // forward, with partial_checkpoints: checkpoint all layers?
  // exchange: activations go to the next stage, gradients to the previous one; the last rank's next is the first.
  std::optional<PipelineUnit> send_next = {}, send_prev = {}, recv_prev = {}, recv_next = {};

  bool operator==(const PipelineEvent&) const = default;
};

using PipelineSchedule = std::vector<PipelineEvent>;

// For messages: "forward of (chunk 0, microbatch 3)", "exchange, receiving activations for (chunk 0, microbatch 3)".
std::string describe(const PipelineEvent& event);

}  // namespace hexad::modeling::layout
