// What stays on a device between the micro-batches of a call: full weights, which are otherwise gathered twice a
// micro-batch, gradients, which are otherwise reduced once a micro-batch (torch's FSDP2 calls it
// set_reshard_after_backward and set_requires_gradient_sync), and weights cast to FP8, which are otherwise cast twice a
// micro-batch. The config says so, or a GPU's free memory does; of casts the memory alone.
#pragma once
#include <hexad/abi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "modeling/backend/memory/room.hpp"
#include "modeling/op/fp8/casts.hpp"
#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

class Residency {
 public:
  enum class Kind { logprobs, training };
  struct Taken {
    int64_t weights = 0, gradients = 0;  // bytes
    int64_t sum() const { return weights + gradients; }
  };
  struct Wishes {
    std::optional<bool> reshard_after_forward, defer_grad_sync;  // absent: as much as fits; on a CPU nothing
    bool casts = false;  // are there any? As many as fit; on a CPU, where FP8 is there to be tested, all
  };
  // All outlive it. One span of the meter lasts through every call.
  Residency(ShardedModel& model, modeling::Fp8Casts& casts, const modeling::MemoryMeter& meter, const Wishes& wishes);

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
    int64_t used() const;                                   // at the peak of this call, beside what stays
    int64_t most_tokens(int64_t begin, int64_t end) const;  // of these micro-batches, -1 of none
    void measure_first();                                   // after the first micro-batch

    Residency& owner_;
    Kind kind_;
    std::span<const hexad_batch* const> batches_;
    int64_t allocated_;
    int exceptions_;  // under way when it began
    bool decided_ = false;
    Taken staying_;
    modeling::CallUse use_;
  };

 private:
  bool by_memory(Kind kind) const;  // does memory decide anything?
  std::optional<bool> defer_wish() const;
  int64_t free_bytes(int64_t most_tokens, Kind kind) const;
  // Casts count themselves.
  Taken choose(Kind kind, int64_t batches, int64_t budget);

  ShardedModel& model_;
  modeling::Fp8Casts& casts_;
  const modeling::MemoryMeter& meter_;
  Wishes wishes_;
  std::array<modeling::MemoryNeed, 2> needs_;  // by kind; known on every rank at once, whatever its micro-batches were
};

}  // namespace hexad::dtensor
