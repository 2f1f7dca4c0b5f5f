// A second stream for work beside that of a first, also in a CUDA graph.
#pragma once
#include <utility>

#include "plugins/native/cuda/check.hpp"

namespace hexad::native::cuda {

class SideStream {
 public:
  SideStream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    for (cudaEvent_t* event : {&forked_, &joined_})
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event");
  }
  ~SideStream() {
    cudaEventDestroy(forked_), cudaEventDestroy(joined_);
    cudaStreamDestroy(stream_);
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  cudaStream_t stream() const { return stream_; }
  // What is enqueued here from now on comes after what `main` has so far.
  void fork(cudaStream_t main) {
    check(cudaEventRecord(forked_, main), "event");
    check(cudaStreamWaitEvent(stream_, forked_), "event");
    open_ = true;
  }
  // What is enqueued on `main` from now on comes after what is here so far. Nothing without a fork before.
  void join(cudaStream_t main) {
    if (!std::exchange(open_, false)) return;
    check(cudaEventRecord(joined_, stream_), "event");
    check(cudaStreamWaitEvent(main, joined_), "event");
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t forked_ = nullptr, joined_ = nullptr;
  bool open_ = false;
};

}  // namespace hexad::native::cuda
