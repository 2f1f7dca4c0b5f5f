#include "lib/ipc/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "lib/base/error.hpp"

namespace hexad::ipc {

SharedMemory::SharedMemory(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    fail(ErrorKind::worker, "cannot map {} bytes of shared memory: {}", size, std::strerror(error));
  }
  data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMemory SharedMemory::make(uint64_t bytes) {
  const int descriptor = ::memfd_create("hexad-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // fallocate and not ftruncate: a machine without the memory says so here, and not by SIGBUS at the first touch.
  if (descriptor < 0 || ::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    fail(ErrorKind::worker, "cannot get {} bytes of shared memory: {}", bytes, std::strerror(error));
  }
  return {descriptor, bytes};
}

SharedMemory SharedMemory::adopt(int descriptor) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0 || about.st_size <= 0) {
    ::close(descriptor);
    fail(ErrorKind::worker, "a descriptor that is no shared memory");
  }
  return {descriptor, static_cast<uint64_t>(about.st_size)};
}

}  // namespace hexad::ipc
