#include "core/base/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/base/error.hpp"

namespace hexad {

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(ErrorKind::data, "{}: cannot be opened: {}", file.string(), std::strerror(errno));
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
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
