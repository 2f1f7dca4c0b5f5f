// What stays on a device between the micro-batches of a call: full weights, which are otherwise gathered twice a
// micro-batch, and gradients, which are otherwise reduced once a micro-batch (torch's FSDP2 calls it
// set_reshard_after_backward and set_requires_gradient_sync). The config says so, or a GPU's free memory does.
#pragma once
#include <hexad/abi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "modeling/backend/memory_meter.hpp"
#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

class Residency {
 public:
  enum class Kind { logprobs, training };
  struct Wishes {
    std::optional<bool> reshard_after_forward, defer_grad_sync;  // absent: as much as fits; on a CPU nothing
  };
  // Both outlive it. One span of the meter lasts through every call.
  Residency(ShardedModel& model, const modeling::MemoryMeter& meter, const Wishes& wishes);

  // A call of the backend, which outlives it: what stays is given up at its end.
  class Call {
   public:
    Call(Residency& owner, Kind kind, std::span<const hexad_batch* const> batches);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    // Before the micro-batch. Collective over the world where memory decides: then before the first one, or before the
    // second if none of its kind has been measured.
    void before(int64_t index);

   private:
    int64_t used() const;                        // at the peak of this call, beside what stays
    int64_t most_tokens(int64_t batches) const;  // of the first ones

    Residency& owner_;
    Kind kind_;
    std::span<const hexad_batch* const> batches_;
    int64_t allocated_;
    bool decided_ = false;
    int64_t staying_ = 0;  // bytes
  };

 private:
  // What calls of a kind use at their peak, of the one that used most.
  struct Need {
    bool known = false;  // on every rank at once, whatever its micro-batches were
    int64_t tokens = 1;  // of its longest micro-batch
    int64_t bytes = 0;
    void learn(int64_t used, int64_t most_tokens);
    double of(int64_t most_tokens) const;  // more tokens use more in proportion; fewer may not use less
  };
  std::optional<bool> defer_wish() const;
  int64_t free_bytes(int64_t most_tokens, Kind kind) const;
  int64_t choose(Kind kind, int64_t batches, int64_t budget);

  ShardedModel& model_;
  const modeling::MemoryMeter& meter_;
  Wishes wishes_;
  std::array<Need, 2> needs_;  // by kind
};

}  // namespace hexad::dtensor
