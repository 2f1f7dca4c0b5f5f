#include "plugins/megatron/optimizer/cast_residency.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace hexad::megatron {

CastResidency::CastResidency(const Settings& settings, const modeling::MemoryMeter& meter, at::Device device)
    : in_use_(settings.fp8 != modeling::Fp8::off),
      in_flight_(static_cast<size_t>(settings.sizes.pipeline * settings.sizes.virtual_pipeline.value_or(1))),
      meter_(meter),
      device_(device) {}

int64_t CastResidency::tokens_in_flight(std::span<const hexad_batch* const> batches) const {
  if (batches.empty()) return -1;
  std::vector<int64_t> tokens;
  for (const hexad_batch* batch : batches) tokens.push_back(batch->num_tokens);
  std::sort(tokens.begin(), tokens.end(), std::greater<>());
  tokens.resize(std::min(tokens.size(), in_flight_));
  return std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
}

int64_t CastResidency::room(const modeling::MemoryNeed& need, int64_t tokens) const {
  if (device_.is_cpu()) return std::numeric_limits<int64_t>::max();
  if (!need.known()) return 0;
  return std::max<int64_t>(0, static_cast<int64_t>(modeling::unused_bytes(meter_, device_) - need.of(tokens)));
}

CastResidency::Call::Call(CastResidency& owner, Kind kind, std::span<const hexad_batch* const> batches)
    : owner_(owner),
      need_(owner.needs_[static_cast<size_t>(kind)]),
      batches_(batches),
      allocated_(owner.meter_.allocated_bytes()),
      exceptions_(std::uncaught_exceptions()) {
  stayed_ = need_.known();
  if (owner.in_use_) owner.casts_.keep(batches.size() > 1 ? owner.room(need_, owner.tokens_in_flight(batches)) : 0);
}

CastResidency::Call::~Call() {
  // A call that failed may not have come to its peak.
  if (std::uncaught_exceptions() == exceptions_) {
    const size_t first = std::min(batches_.size(), owner_.in_flight_);
    const int64_t peak = owner_.meter_.highest_bytes() - allocated_, casts = owner_.casts_.bytes();
    need_.learn({.first_peak = peak,
                 .first_left = owner_.meter_.allocated_bytes() - allocated_ - casts,
                 .first_tokens = owner_.tokens_in_flight(batches_.first(first)),
                 .peak = peak - casts,
                 .later_tokens = owner_.tokens_in_flight(batches_.subspan(first)),
                 .stayed = stayed_});
  }
  owner_.casts_.clear();
}

}  // namespace hexad::megatron
