// The bytes of a file of text, read where they are wanted.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace hexad::table {

class TextBytes {
 public:
  TextBytes() = default;
  TextBytes(const TextBytes&) = delete;
  TextBytes& operator=(const TextBytes&) = delete;
  virtual ~TextBytes() = default;
  virtual int64_t size() const = 0;
  // Fills `bytes` from `offset` on, which is there. Throws Error(data).
  virtual void read(int64_t offset, std::span<char> bytes) const = 0;
};

// Those of a file, which is opened for each read: there may be thousands. `name` stands in messages. Throws Error(data)
// where it cannot be read, and where it was written anew since.
std::unique_ptr<TextBytes> bytes_of_file(const std::filesystem::path& file, const std::filesystem::path& name);
// The same of a file that is held open, whatever becomes of its name, and that nobody writes anew under it.
std::unique_ptr<TextBytes> held_bytes(const std::filesystem::path& file, const std::filesystem::path& name);
std::unique_ptr<TextBytes> bytes_of_text(std::string text);

}  // namespace hexad::table
