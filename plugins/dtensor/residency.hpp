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
    std::optional<bool> reshard_after_forward, defer_grad_sync;  // absent: as much as fits, and on a CPU nothing
  };
  // Both outlive it. One span of the meter lasts through every call.
  Residency(ShardedModel& model, const modeling::MemoryMeter& meter, const Wishes& wishes);

  // A call of the backend: what stays is given up at its end.
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
    int64_t used() const;  // at the peak of this call, beside what stays

    Residency& owner_;
    Kind kind_;
    int64_t count_, most_tokens_ = 0, allocated_;
    bool decided_ = false;
    int64_t staying_ = 0;  // bytes
  };

 private:
  int64_t free_bytes(int64_t most_tokens, Kind kind) const;
  int64_t choose(Kind kind, int64_t batches, int64_t budget);

  ShardedModel& model_;
  const modeling::MemoryMeter& meter_;
  Wishes wishes_;
  std::array<double, 2> bytes_per_token_{};  // of a micro-batch, by kind; 0: not measured
};

}  // namespace hexad::dtensor
