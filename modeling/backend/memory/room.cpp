#include "modeling/backend/memory/room.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

namespace hexad::modeling {
namespace {

constexpr int64_t kMargin = int64_t(4) << 30;
constexpr double kMarginPart = 0.03;

}  // namespace

void MemoryNeed::learn(int64_t used, int64_t most_tokens) {
  known_ = measured_ = true;
  if (used <= bytes_) return;
  bytes_ = used, tokens_ = std::max<int64_t>(1, most_tokens);
}

void MemoryNeed::learn(const CallUse& call) {
  known_ = true;
  if (call.first_tokens <= call.later_tokens) return learn(call.peak, call.later_tokens);
  if (!call.stayed) learn(call.first_peak + call.first_left, call.first_tokens);
}

double MemoryNeed::of(int64_t most_tokens) const {
  return double(bytes_) * std::max(1.0, double(most_tokens) / double(tokens_));
}

double unused_bytes(const MemoryMeter& meter, at::Device device) {
  const auto [free, total] = c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
  const int64_t unused = static_cast<int64_t>(free) + meter.reserved_bytes() - meter.allocated_bytes();
  return double(unused) - double(kMargin) - kMarginPart * double(total);
}

}  // namespace hexad::modeling
