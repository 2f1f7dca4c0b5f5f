// All of some bytes into a file at a place.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "lib/base/error.hpp"

namespace hexad::tensorfile {

[[noreturn]] inline void refuse_writing(const std::filesystem::path& path, int reason) {
  fail(ErrorKind::data, "{}: cannot be written: {}", path.string(), std::strerror(reason));
}

// Throws Error(data) that names `path` and the reason.
inline void write_all(int descriptor, const void* data, size_t size, uint64_t offset,
                      const std::filesystem::path& path) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(descriptor, from, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) refuse_writing(path, written < 0 ? errno : ENOSPC);
    from += written, size -= static_cast<size_t>(written), offset += static_cast<uint64_t>(written);
  }
}

}  // namespace hexad::tensorfile
