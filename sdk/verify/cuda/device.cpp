#include "sdk/verify/cuda/device.hpp"

#include <string>
#include <utility>

namespace hexad::verify {
namespace {

constexpr size_t kMemory = size_t{512} << 20;

// Waits until *flag is not 0, at most `nanoseconds`. PTX, which the driver compiles for whatever GPU it has.
constexpr const char* kGate = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry gate(.param .u64 flag, .param .u64 nanoseconds)
{
  .reg .pred %p<2>;
  .reg .b32 %r<1>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [flag];
  ld.param.u64 %d1, [nanoseconds];
  mov.u64 %d2, %globaltimer;
  add.u64 %d1, %d1, %d2;
AGAIN:
  ld.volatile.u32 %r0, [%d0];
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra DONE;
  mov.u64 %d2, %globaltimer;
  setp.lt.u64 %p1, %d2, %d1;
  @%p1 bra AGAIN;
DONE:
  ret;
}
)";

uint64_t address(const void* block) { return reinterpret_cast<uint64_t>(block); }

const CudaDriver* open_driver() {
  std::string why_not;
  const CudaDriver* driver = CudaDriver::open(why_not);
  if (!driver) throw DeviceError(why_not);
  return driver;
}

}  // namespace

CudaDevice::CudaDevice() : driver_(open_driver()), arena_(kMemory) {
  int device = 0;
  check(driver_->device_get(&device, 0), "cuDeviceGet");
  check(driver_->primary_context_retain(&context_, device), "cuDevicePrimaryCtxRetain");
  make_current();
  check(driver_->stream_create(&stream_, CudaDriver::kStreamNonBlocking), "cuStreamCreate");
  check(driver_->stream_create(&bystander_, CudaDriver::kStreamDefault), "cuStreamCreate");
  check(driver_->memory_alloc(&memory_, kMemory), "cuMemAlloc");
  void *module = nullptr, *flag = nullptr;
  check(driver_->module_load_data(&module, kGate), "cuModuleLoadData");
  check(driver_->module_get_function(&gate_, module, "gate"), "cuModuleGetFunction");
  check(driver_->host_alloc(&flag, sizeof(uint32_t), CudaDriver::kHostPortable | CudaDriver::kHostMapped),
        "cuMemHostAlloc");
  check(driver_->host_device_pointer(&gate_flag_address_, flag, 0), "cuMemHostGetDevicePointer");
  gate_flag_ = static_cast<volatile uint32_t*>(flag);
}

void* CudaDevice::try_allocate(size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto offset = arena_.take(bytes);
  return offset ? reinterpret_cast<void*>(memory_ + *offset) : nullptr;
}
void* CudaDevice::allocate(size_t bytes) {
  void* block = try_allocate(bytes);
  if (!block) throw DeviceError("the kit's " + std::to_string(kMemory >> 20) + " MiB of device memory are used up");
  return block;
}
void CudaDevice::release(void* block) {
  const std::scoped_lock lock(mutex_);
  if (block) arena_.give(address(block) - memory_);
}

void CudaDevice::upload(void* block, const void* host, size_t bytes) {
  check(driver_->copy_to_device_async(address(block), host, bytes, stream_), "cuMemcpyHtoDAsync");
  check(driver_->stream_synchronize(stream_), "cuStreamSynchronize");
}
void CudaDevice::download(void* host, const void* block, size_t bytes) {
  check(driver_->copy_to_host_async(host, address(block), bytes, stream_), "cuMemcpyDtoHAsync");
  check(driver_->stream_synchronize(stream_), "cuStreamSynchronize");
}

void CudaDevice::make_current() const { check(driver_->context_set_current(context_), "cuCtxSetCurrent"); }
bool CudaDevice::is_current() const {
  void* current = nullptr;
  check(driver_->context_get_current(&current), "cuCtxGetCurrent");
  return current == context_;
}
void CudaDevice::synchronize() const { check(driver_->context_synchronize(), "cuCtxSynchronize"); }
size_t CudaDevice::bytes_in_use() const {
  size_t free = 0, total = 0;
  check(driver_->memory_info(&free, &total), "cuMemGetInfo");
  return total - free;
}

void CudaDevice::fill(void* block, unsigned char byte, size_t bytes) const {
  check(driver_->memory_set_async(address(block), byte, bytes, stream_), "cuMemsetD8Async");
}
void CudaDevice::copy(void* to, const void* from, size_t bytes) const {
  check(driver_->copy_on_device_async(address(to), address(from), bytes, stream_), "cuMemcpyDtoDAsync");
}

void CudaDevice::close_gate(double seconds) {
  *gate_flag_ = 0;
  uint64_t flag = gate_flag_address_, nanoseconds = static_cast<uint64_t>(seconds * 1e9);
  void* parameters[] = {&flag, &nanoseconds};
  check(driver_->launch_kernel(gate_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr), "cuLaunchKernel");
}
void CudaDevice::open_gate() { *gate_flag_ = 1; }
bool CudaDevice::busy() const {
  const int code = driver_->stream_query(stream_);
  if (code != CudaDriver::kNotReady) check(code, "cuStreamQuery");
  return code == CudaDriver::kNotReady;
}

std::string CudaDevice::capture(const std::function<void()>& work, bool own_stream) {
  void *stream = own_stream ? stream_ : bystander_, *graph = nullptr;
  check(driver_->stream_begin_capture(stream, CudaDriver::kCaptureGlobal), "cuStreamBeginCapture");
  work();
  int code = driver_->stream_end_capture(stream, &graph);
  if (own_stream && graph_) check(driver_->graph_exec_destroy(std::exchange(graph_, nullptr)), "cuGraphExecDestroy");
  if (code == CudaDriver::kSuccess && own_stream) code = driver_->graph_instantiate(&graph_, graph, 0);
  if (graph) check(driver_->graph_destroy(graph), "cuGraphDestroy");
  return code == CudaDriver::kSuccess ? "" : name_of(code);
}
void CudaDevice::replay() const { check(driver_->graph_launch(graph_, stream_), "cuGraphLaunch"); }

std::string CudaDevice::name_of(int code) const {
  const char* name = nullptr;
  return driver_->get_error_name(code, &name) == CudaDriver::kSuccess ? name : std::to_string(code);
}
void CudaDevice::check(int code, const char* what) const {
  if (code != CudaDriver::kSuccess) throw DeviceError(what + std::string(": ") + name_of(code));
}

std::string cuda_device_name(std::string& why_not) {
  const CudaDriver* driver = CudaDriver::open(why_not);
  char name[256] = "";
  int device = 0;
  if (!driver || driver->device_get(&device, 0) || driver->device_get_name(name, sizeof name, device)) return "";
  return name;
}

}  // namespace hexad::verify
