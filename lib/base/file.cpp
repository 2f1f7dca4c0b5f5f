#include "lib/base/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "lib/base/error.hpp"

namespace hexad {

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(ErrorKind::data, "{}: cannot be opened: {}", file.string(), std::strerror(errno));
  std::error_code unknown;
  const uintmax_t size = std::filesystem::file_size(file, unknown);  // of what is no regular file: an error, or 0
  std::string content(unknown ? 0 : size, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<size_t>(in.gcount()));
  // What is more than was told: a pipe, a file of /proc, one that grows.
  for (char more[16384]; in.read(more, sizeof more), in.gcount() > 0;)
    content.append(more, static_cast<size_t>(in.gcount()));
  if (in.bad()) fail(ErrorKind::data, "{}: cannot be read: {}", file.string(), std::strerror(errno));
  return content;
}

void write_file(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary);
  out << bytes;
  if (!out.flush()) fail(ErrorKind::data, "{}: cannot be written: {}", file.string(), std::strerror(errno));
}

void sync_path(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorKind::data, "{}: cannot be opened: {}", path.string(), std::strerror(errno));
  const int reason = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (reason != 0 && reason != EINVAL && reason != ENOTSUP)
    fail(ErrorKind::data, "{}: cannot be written: {}", path.string(), std::strerror(reason));
}

void sync_tree(const std::filesystem::path& root) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.is_regular_file() || entry.is_directory()) sync_path(entry.path());
  sync_path(root);
}

}  // namespace hexad
