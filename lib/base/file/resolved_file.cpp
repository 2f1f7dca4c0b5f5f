#include "lib/base/file/resolved_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/file/walk.hpp"
#include "lib/base/sha256.hpp"

namespace hexad {
namespace {

constexpr const char* kShorter = "has become shorter while it was read";

// "08:01 1234", device and inode of a line of /proc/self/maps, if the address lies in its range; else empty.
std::string mapped_file(const std::string& line, uintptr_t address) {
  uintptr_t begin = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, begin, 16);
  if (first.ec != std::errc() || first.ptr == last) return "";
  std::from_chars(first.ptr + 1, last, end, 16);
  if (address < begin || address >= end) return "";
  size_t field = 0;  // begin-end rights offset device inode name
  for (int i = 0; i < 3; ++i) field = line.find(' ', field) + 1;
  return line.substr(field, line.find(' ', line.find(' ', field) + 1) - field);
}

}  // namespace

ResolvedFile::ResolvedFile(const std::filesystem::path& name, RefuseFile refuse, bool trusted) : refuse_(refuse) {
  const Walk walk(name, trusted);
  if (walk.reason() != 0) refuse(name.string(), "cannot be opened", walk.reason());
  path_ = walk.path(), status_ = walk.status(), insecure_ = walk.insecure(false);
  if (!S_ISREG(status_.st_mode)) refuse(name.string(), "not a regular file", S_ISDIR(status_.st_mode) ? EISDIR : ENXIO);
  const std::string same = fmt::format("/proc/self/fd/{}", walk.descriptor());  // no name that could lead elsewhere
  descriptor_ = ::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor_ < 0) refuse(name.string(), "cannot be opened", errno);
}

ResolvedFile::ResolvedFile(ResolvedFile&& from) noexcept
    : path_(std::move(from.path_)),
      refuse_(from.refuse_),
      descriptor_(std::exchange(from.descriptor_, -1)),
      status_(from.status_),
      insecure_(std::move(from.insecure_)) {}

ResolvedFile::~ResolvedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ResolvedFile::read(std::span<std::byte> bytes, uint64_t offset) const {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::pread(descriptor_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(offset + at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_(path_.string(), "cannot be read", errno);
    if (count == 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
}

std::string ResolvedFile::text() const {
  std::string text(size(), '\0');
  if (!read(std::as_writable_bytes(std::span(text)))) refuse_(path_.string(), kShorter, EIO);
  return text;
}

std::string ResolvedFile::sha256() const {
  Sha256 digest;
  std::vector<std::byte> part(std::min<uint64_t>(size(), 1 << 20));
  for (uint64_t at = 0; at < size(); at += part.size()) {
    part.resize(std::min<uint64_t>(part.size(), size() - at));
    if (!read(part, at)) refuse_(path_.string(), kShorter, EIO);
    digest.add(part);
  }
  return digest.hex();
}

bool ResolvedFile::is_mapped_at(const void* address) const {
  void* const own = ::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (own == MAP_FAILED) refuse_(path_.string(), "cannot be mapped", errno);
  std::string ours, theirs;
  try {
    InputFile maps("/proc/self/maps", refuse_);
    for (std::string line; (ours.empty() || theirs.empty()) && std::getline(maps, line);) {
      if (ours.empty()) ours = mapped_file(line, reinterpret_cast<uintptr_t>(own));
      if (theirs.empty()) theirs = mapped_file(line, reinterpret_cast<uintptr_t>(address));
    }
  } catch (...) {
    ::munmap(own, 1);
    throw;
  }
  ::munmap(own, 1);
  return !ours.empty() && ours == theirs;
}

}  // namespace hexad
