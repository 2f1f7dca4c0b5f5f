#include "lib/tensorfile/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/error.hpp"

namespace hexad::tensorfile {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path, Pages pages) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // of a pipe, without waiting
  if (descriptor < 0) fail(ErrorKind::data, "{}: cannot be opened: {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail(ErrorKind::data, "{}: not a regular file", path.string());
  }
  const auto size = static_cast<size_t>(status.st_size);
  const bool writable = pages == Pages::copy_on_write;
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const int flags = writable ? MAP_PRIVATE | MAP_NORESERVE : MAP_PRIVATE;  // few pages are ever written to
  void* address = size ? ::mmap(nullptr, size, access, flags, descriptor, 0) : nullptr;
  const int reason = errno;
  std::error_code unknown;
  std::filesystem::path real = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), unknown);
  ::close(descriptor);
  if (address == MAP_FAILED) fail(ErrorKind::data, "{}: cannot be mapped: {}", path.string(), std::strerror(reason));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, std::move(real), {static_cast<const std::byte*>(address), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace hexad::tensorfile
