#include "modeling/parallel/side_stream.hpp"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hexad::modeling {
namespace {

// `second` waits for what `first` has been given.
void order(const c10::Stream& first, const c10::Stream& second) {
  c10::Event event(first.device_type());
  event.record(first);
  event.block(second);
}

}  // namespace

SideStream::SideStream(at::Device device) : device_(device) {
  if (!device.is_cpu())
    stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/true);
}

void SideStream::run(const std::function<void()>& body) {
  if (!stream_) return body();
  order(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_), *stream_);
  const c10::StreamGuard guard(*stream_);
  body();
}

void SideStream::join() {
  if (stream_) order(*stream_, c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

}  // namespace hexad::modeling
