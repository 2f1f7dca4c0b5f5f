#include "plugins/server_bridge/refit/ipc/shared_memory.hpp"

#include "modeling/refit/cuda_driver.hpp"

namespace hexad::bridge {

SharedMemory share(const refit::GpuStaging& staging) {
  const refit::CudaDriver& driver = refit::CudaDriver::get();
  const refit::CudaContext context(staging.device_id());
  SharedMemory memory;
  memory.bytes = static_cast<int64_t>(staging.size());
  if (const int result = driver.ipc_handle(memory.handle.data(), staging.address()); result != 0) {
    sdk::fail(
        HEXAD_FAILED_PRECONDITION,
        "weight update by CUDA IPC: this GPU's memory cannot be shared (cuIpcGetMemHandle gave CUDA error %d). Set "
        "policy.generation.refit_transport to disk",
        result);
  }
  std::array<std::byte, 16> uuid{};
  refit::CudaDriver::check(driver.device_uuid(uuid.data(), context.device()), "cuDeviceGetUuid");
  memory.uuid = uuid_text(uuid);
  return memory;
}

std::string uuid_text(std::span<const std::byte, 16> uuid) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto value = std::to_integer<unsigned>(uuid[i]);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

void add_tensor_arguments(Pickle& pickle, const SharedMemory& memory, const std::function<void(Pickle&)>& device) {
  // Version 1 of c10's form, the oldest, which every receiver takes; 'c': memory of cudaMalloc.
  const std::string form = std::string("\x01") + "c" +
                           std::string(reinterpret_cast<const char*>(memory.handle.data()), memory.handle.size());
  const std::string no_event(64, '\0');
  pickle.mark()
      .global("torch", "Tensor")
      .integer(memory.bytes)
      .tuple_of_one()  // shape
      .integer(1)
      .tuple_of_one()  // strides
      .integer(0)      // offset in the storage
      .global("torch.storage", "UntypedStorage")
      .global("torch", "uint8");
  device(pickle);
  pickle.bytes(form)
      .integer(memory.bytes)  // of the storage
      .integer(0)             // the storage's offset in the allocation
      .boolean(false)         // requires_grad
      .bytes("/hexad_no_reference_counter")
      .integer(0)
      .bytes(no_event)
      .boolean(false)  // no event to wait for: the sender's stream was waited for
      .tuple();
}

}  // namespace hexad::bridge
