// Work of a GPU that goes on beside the current stream's: copies into weights that are gathered ahead. On a CPU there
// is no stream, and everything happens at once.
#pragma once
#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

namespace hexad::modeling {

class SideStream {
 public:
  explicit SideStream(at::Device device);

  bool exists() const { return stream_.has_value(); }
  // Runs `body` with the side stream as the current one, behind all that the current stream has been given so far.
  // Memory that it writes to is allocated before, outside.
  void run(const std::function<void()>& body);
  // What the current stream is given from now on waits for all that run() has been given.
  void join();

 private:
  at::Device device_;
  std::optional<c10::Stream> stream_;
};

}  // namespace hexad::modeling
