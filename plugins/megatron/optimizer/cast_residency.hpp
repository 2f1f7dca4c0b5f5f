// FP8 casts of weights that stay between the micro-batches of a call, as many as a GPU's free memory holds beside what
// such a call needs. Ranks may differ in it: results do not.
#pragma once
#include <hexad/abi.h>

#include <array>
#include <span>

#include "modeling/backend/memory/room.hpp"
#include "modeling/op/fp8/casts.hpp"
#include "plugins/megatron/settings/settings.hpp"

namespace hexad::megatron {

class CastResidency {
 public:
  enum class Kind { logprobs, kept_logprobs, training };  // kept weights come from the host, which takes memory too
  // The meter outlives it. One span of it lasts through every call.
  CastResidency(const Settings& settings, const modeling::MemoryMeter& meter, at::Device device);

  modeling::Fp8Casts& casts() { return casts_; }

  // A call of the backend, which outlives it: casts are given up at its end. The first call of a kind on a GPU keeps
  // none, but tells what such calls need; on a CPU, where FP8 is there to be tested, all are kept.
  class Call {
   public:
    Call(CastResidency& owner, Kind kind, std::span<const hexad_batch* const> batches);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CastResidency& owner_;
    modeling::MemoryNeed& need_;
    std::span<const hexad_batch* const> batches_;
    int64_t allocated_;
    int exceptions_;
    bool stayed_ = false;
  };

 private:
  // Of the longest micro-batches that the pipeline holds at once, -1 of none.
  int64_t tokens_in_flight(std::span<const hexad_batch* const> batches) const;
  int64_t room(const modeling::MemoryNeed& need, int64_t tokens) const;

  bool in_use_;
  size_t in_flight_;  // micro-batches
  const modeling::MemoryMeter& meter_;
  at::Device device_;
  modeling::Fp8Casts casts_;
  std::array<modeling::MemoryNeed, 3> needs_;  // by kind
};

}  // namespace hexad::megatron
