// A file mapped into memory, privately: reading pages it in, writing does not reach the disk.
#pragma once
#include <cstdint>
#include <filesystem>

namespace hexad::modeling {

class MappedFile {
 public:
  // Throws Error when the file cannot be opened or mapped.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace hexad::modeling
