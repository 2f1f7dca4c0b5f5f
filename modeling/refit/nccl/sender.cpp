#include "modeling/refit/nccl/sender.hpp"

#include <dlfcn.h>

#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

namespace hexad::refit {
namespace {

// ncclResult_t, ncclDataType_t and ncclRedOp_t of NCCL 2.
constexpr int kSuccess = 0, kInProgress = 7, kUint8 = 1, kFloat32 = 7, kSum = 0;

// The fields of ncclConfig_t up to `blocking`, which every NCCL since 2.14 reads; those behind keep their defaults, as
// size and version say that they are not there.
struct Config {
  size_t size = 20;
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};
static_assert(offsetof(Config, blocking) + sizeof(int) == 20);

struct Nccl {
  int (*get_version)(int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*unique_id)(void*) = nullptr;
  int (*join)(void**, int, UniqueId, int, Config*) = nullptr;
  int (*state)(void*, int*) = nullptr;
  int (*all_reduce)(const void*, void*, size_t, int, int, void*, void*) = nullptr;
  int (*broadcast)(const void*, void*, size_t, int, int, void*, void*) = nullptr;
  int (*abort)(void*) = nullptr;
  std::string path;

  static const Nccl& get() {
    static const Nccl nccl;
    return nccl;
  }

 private:
  Nccl() {
    void* library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_NODELETE);
    if (!library)
      sdk::fail(HEXAD_FAILED_PRECONDITION, "refit_transport nccl: libnccl.so.2 is not there (%s)", ::dlerror());
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (!function) sdk::fail(HEXAD_FAILED_PRECONDITION, "libnccl.so.2 has no %s: wanted NCCL 2.14 or newer", name);
    };
    find(get_version, "ncclGetVersion");
    find(error_text, "ncclGetErrorString");
    find(unique_id, "ncclGetUniqueId");
    find(join, "ncclCommInitRankConfig");
    find(state, "ncclCommGetAsyncError");
    find(all_reduce, "ncclAllReduce");
    find(broadcast, "ncclBroadcast");
    find(abort, "ncclCommAbort");
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void*>(get_version), &info) && info.dli_fname) path = info.dli_fname;
  }
};

// Throws if it is time to.
void pause_shortly(const char* what, const GiveUp& give_up) {
  if (const std::string why = give_up(); !why.empty())
    sdk::fail(HEXAD_UNAVAILABLE, "weight update by NCCL: %s did not end: %s", what, why.c_str());
  std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace

std::string nccl_path() {
  try {
    return Nccl::get().path;
  } catch (const sdk::Error&) {
    return "";
  }
}

UniqueId new_unique_id() {
  UniqueId id{};
  if (const int result = Nccl::get().unique_id(id.data()); result != kSuccess)
    sdk::fail(HEXAD_INTERNAL, "ncclGetUniqueId: %s", Nccl::get().error_text(result));
  return id;
}

NcclSender::NcclSender(const UniqueId& id, int ranks, int device_id, std::string advice, bool sums,
                       const GiveUp& give_up)
    : device_id_(device_id), advice_(std::move(advice)) {
  const CudaContext context(device_id_);
  Config config;
  try {
    CudaDriver::check(CudaDriver::get().stream_create(&stream_, CudaDriver::kNonBlocking), "cuStreamCreate");
    CudaDriver::check(CudaDriver::get().allocate(&one_, sizeof(float)), "cuMemAlloc");
    check(Nccl::get().join(&comm_, ranks, id, 0, &config), "joining the others");
    settle("joining the others", give_up);
    if (sums) warm_up(give_up);
  } catch (...) {
    leave();
    throw;
  }
}

NcclSender::~NcclSender() { leave(); }

// The memory last: kernels that wait for the others may be on it until the communicator is aborted.
void NcclSender::leave() {
  try {
    const CudaContext context(device_id_);
    if (comm_) Nccl::get().abort(comm_);
    if (one_) CudaDriver::get().free(one_);
    if (stream_) CudaDriver::get().stream_destroy(stream_);
  } catch (const std::exception&) {  // of a lost GPU there is nothing to give back
  }
}

void NcclSender::check(int result, const char* what) {
  if (result == kSuccess || result == kInProgress) return;
  int version = 0;
  Nccl::get().get_version(&version);
  sdk::fail(HEXAD_UNAVAILABLE,
            "weight update by NCCL: %s failed: %s. This side has NCCL %d (%s); the others need the same version%s",
            what, Nccl::get().error_text(result), version, Nccl::get().path.c_str(), advice_.c_str());
}

// Of a communicator that does not block: until its last call has ended.
void NcclSender::settle(const char* what, const GiveUp& give_up) {
  for (int state = kInProgress; state == kInProgress;) {
    check(Nccl::get().state(comm_, &state), what);
    check(state, what);
    if (state == kInProgress) pause_shortly(what, give_up);
  }
}

// Sums one float over all ranks.
void NcclSender::warm_up(const GiveUp& give_up) {
  void* const data = reinterpret_cast<void*>(one_);
  check(Nccl::get().all_reduce(data, data, 1, kFloat32, kSum, comm_, stream_), "the first sum");
  settle("the first sum", give_up);
  wait(give_up);
}

void NcclSender::broadcast(uintptr_t data, size_t bytes, const GiveUp& give_up) {
  const CudaContext context(device_id_);
  void* const pointer = reinterpret_cast<void*>(data);
  check(Nccl::get().broadcast(pointer, pointer, bytes, kUint8, 0, comm_, stream_), "a broadcast");
  settle("a broadcast", give_up);
}

void NcclSender::wait(const GiveUp& give_up) {
  const CudaContext context(device_id_);
  for (;;) {
    int state = kSuccess;
    check(Nccl::get().state(comm_, &state), "a broadcast");
    check(state, "a broadcast");
    const int result = CudaDriver::get().query(stream_);
    if (result == 0) return;
    if (result != CudaDriver::kNotReady) CudaDriver::check(result, "cuStreamQuery");
    pause_shortly("a broadcast", give_up);
  }
}

}  // namespace hexad::refit
