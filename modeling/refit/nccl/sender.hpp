// NCCL, looked for at run time: both sides of a communicator need the same version, so that this process's is used and
// its path told to the servers that are spawned.
#pragma once
#include <hexad/services.hpp>

#include <array>
#include <string>

#include "modeling/refit/cuda_driver.hpp"
#include "modeling/refit/sender.hpp"

namespace hexad::refit {

inline constexpr size_t kUniqueIdBytes = 128;
using UniqueId = std::array<std::byte, kUniqueIdBytes>;  // ncclUniqueId

// Where libnccl.so.2 of this process lies; "" where there is none.
std::string nccl_path();

UniqueId new_unique_id();

// A communicator whose rank 0 is this process, with a stream of its own. What is given up is aborted; every wait throws
// sdk::Error then.
class NcclSender : public Sender {
 public:
  // Waits for the others to join. Throws too when NCCL refuses; `advice` is then how the others are told which NCCL is
  // this process's, "" if they cannot be. `sums`: the others sum one float when they begin.
  NcclSender(const UniqueId& id, int ranks, int device_id, std::string advice, bool sums, const GiveUp& give_up);
  ~NcclSender() override;  // aborts: the other side never closes its own
  NcclSender(const NcclSender&) = delete;
  NcclSender& operator=(const NcclSender&) = delete;

  void broadcast(uintptr_t data, size_t bytes, const GiveUp& give_up) override;
  void wait(const GiveUp& give_up) override;

 private:
  void check(int result, const char* what);
  void settle(const char* what, const GiveUp& give_up);
  void warm_up(const GiveUp& give_up);
  void leave();

  int device_id_;
  std::string advice_;
  void* comm_ = nullptr;    // ncclComm_t
  void* stream_ = nullptr;  // CUstream
  CudaDriver::Pointer one_ = 0;
};

}  // namespace hexad::refit
