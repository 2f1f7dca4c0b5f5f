// NCCL, looked for at run time: both sides of a communicator need the same version, so that this process's is used and
// its path told to the servers that are spawned.
#pragma once
#include <hexad/services.hpp>

#include <array>
#include <functional>
#include <string>

#include "plugins/server_bridge/refit/cuda_driver.hpp"

namespace hexad::vllm {

using bridge::CudaContext;
using bridge::CudaDriver;

inline constexpr size_t kUniqueIdBytes = 128;
using UniqueId = std::array<std::byte, kUniqueIdBytes>;  // ncclUniqueId

// Where libnccl.so.2 of this process lies; "" where there is none.
std::string nccl_path();

UniqueId new_unique_id();

// Why not to wait any longer; "": wait. Asked again and again while something is waited for.
using GiveUp = std::function<std::string()>;

// A communicator whose rank 0 is this process, with a stream of its own. What is given up is aborted; every wait throws
// sdk::Error then.
class NcclSender {
 public:
  // Waits for the others to join. Throws too when NCCL refuses.
  NcclSender(const UniqueId& id, int ranks, int device_id, const GiveUp& give_up);
  ~NcclSender();  // aborts: the other side never closes its own
  NcclSender(const NcclSender&) = delete;
  NcclSender& operator=(const NcclSender&) = delete;

  // Enqueues; the memory must stay until wait().
  void broadcast(CudaDriver::Pointer data, size_t bytes, const GiveUp& give_up);
  void wait(const GiveUp& give_up);

 private:
  void check(int result, const char* what);
  void settle(const char* what, const GiveUp& give_up);
  void warm_up(const GiveUp& give_up);
  void leave();

  int device_id_;
  void* comm_ = nullptr;    // ncclComm_t
  void* stream_ = nullptr;  // CUstream
  CudaDriver::Pointer one_ = 0;
};

}  // namespace hexad::vllm
