// A file mapped read-only into memory.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace hexad::tensorfile {

class MappedFile {
 public:
  // Fails with the system's reason. An empty file maps to an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace hexad::tensorfile
