// The GPU that plugins for CUDA memory are verified on: device 0, its primary context and one stream.
#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "sdk/verify/cuda/device_arena.hpp"
#include "sdk/verify/cuda/driver.hpp"
#include "sdk/verify/guarded.hpp"

namespace hexad::verify {

// Memory comes from one block, in the order of the stream. Lives until the process ends.
class CudaDevice : public MemorySpace {
 public:
  CudaDevice();  // makes the context current; throws DeviceError if there is no GPU

  DLDevice where() const override { return {kDLCUDA, 0}; }
  void* allocate(size_t bytes) override;
  void release(void* block) override;
  void upload(void* block, const void* host, size_t bytes) override;
  void download(void* host, const void* block, size_t bytes) override;
  void* try_allocate(size_t bytes);  // null if there is no room

  // The stream on which tensors are ready. It does not wait for the legacy default stream, nor the other way round.
  void* stream() const { return stream_; }
  void make_current() const;
  bool is_current() const;
  void synchronize() const;  // all of the context
  size_t bytes_in_use() const;

  // Enqueued on the stream.
  void fill(void* block, unsigned char byte, size_t bytes) const;
  void copy(void* to, const void* from, size_t bytes) const;
  // A kernel that runs until open_gate, at most `seconds`.
  void close_gate(double seconds);
  void open_gate();
  bool busy() const;  // whether the stream has work that is not done

  // Runs `work` while a stream is captured in global mode: the plugin's own, into a graph, or one that the legacy
  // default stream waits for, so that `work` is only watched. Returns what the driver says if that broke the capture,
  // else "".
  std::string capture(const std::function<void()>& work, bool own_stream);
  void replay() const;  // the graph of the last capture of the own stream, on the stream

 private:
  void check(int code, const char* what) const;
  std::string name_of(int code) const;

  const CudaDriver* driver_;
  void *context_ = nullptr, *stream_ = nullptr, *bystander_ = nullptr, *gate_ = nullptr, *graph_ = nullptr;
  uint64_t memory_ = 0, gate_flag_address_ = 0;
  volatile uint32_t* gate_flag_ = nullptr;
  std::mutex mutex_;
  DeviceArena arena_;
};

// The name of device 0, or "" and why there is none. A process that has asked may not fork any more.
std::string cuda_device_name(std::string& why_not);

}  // namespace hexad::verify
