#include "modeling/weight/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "modeling/error.hpp"

namespace hexad::modeling {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    fail("{} is not a file", path.string());
  }
  size_ = uint64_t(status.st_size);
  if (size_ > 0) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    const int error = errno;
    close(fd);
    if (memory == MAP_FAILED) fail("cannot map {} ({} bytes): {}", path.string(), size_, std::strerror(error));
    data_ = static_cast<uint8_t*>(memory);
  } else {
    close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

}  // namespace hexad::modeling
