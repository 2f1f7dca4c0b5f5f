// A file mapped into memory: reading pages it in, and nothing that is done to the memory reaches the disk.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace hexad::tensorfile {

// copy_on_write: who casts the const away may write to the memory, and gets a page of its own there.
enum class Pages { read_only, copy_on_write };

class MappedFile {
 public:
  // Fails with the system's reason. An empty file maps to an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path, Pages pages = Pages::read_only);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Without links, as it was when it was opened: by what is mapped, not by its name.
  const std::filesystem::path& real_path() const { return real_path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::filesystem::path path, std::filesystem::path real_path, std::span<const std::byte> bytes)
      : path_(std::move(path)), real_path_(std::move(real_path)), bytes_(bytes) {}
  std::filesystem::path path_, real_path_;
  std::span<const std::byte> bytes_;
};

}  // namespace hexad::tensorfile
