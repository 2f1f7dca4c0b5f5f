#include "runtime/device.hpp"
#include "runtime/error.hpp"

namespace hexad::runtime::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error(HEXAD_UNIMPLEMENTED, "this build has no CUDA: configure with -DHEXAD_CUDA=ON (preset cuda)");
}

}  // namespace

const char* version() { return ""; }
int32_t device_count() { return 0; }
const char* device_name(int32_t) { return ""; }
int64_t bytes_used(int32_t) { return 0; }
void use_device(int32_t) { refuse(); }
void* stream(int32_t) { return nullptr; }
void* allocate(int32_t, uint64_t) { refuse(); }
void release(void*) {}
void range_push(const char*) {}
void range_pop() {}
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>&, int, int,
                                            std::chrono::milliseconds) {
  refuse();
}
void end_nccl(c10d::ProcessGroup&) {}
void* nccl_handle(c10d::ProcessGroup&) { refuse(); }
void check_nccl(c10d::ProcessGroup&) {}

}  // namespace hexad::runtime::cuda
