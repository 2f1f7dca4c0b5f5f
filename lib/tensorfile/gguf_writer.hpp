// GGUF, written: header and metadata first, then the tensors' bytes in the order that was announced, so that a model
// need not fit in memory. Version 3, little-endian, aligned to 32 bytes. Format: gguf.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/tensorfile/gguf.hpp"

namespace hexad::tensorfile {

// A metadata value as it is stored: readers of the format want each key in the type that its document says.
using GgufStored = std::variant<bool, uint32_t, int32_t, float, std::string, std::vector<int32_t>, std::vector<float>,
                                std::vector<std::string>>;
using GgufEntries = std::vector<std::pair<std::string, GgufStored>>;

struct GgufSpec {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<int64_t> shape;  // row-major, outermost first; the last divides into whole blocks

  uint64_t elements() const;
  uint64_t bytes() const;
};

// One file, which is made at `path`, never through a link, and is whole after finish(); destroyed without it, the
// writer removes the file. Nothing is synced. Errors are Error(data) with path and reason (a full disk), and
// Error(internal) for bytes that are not as announced. Not thread-safe.
class GgufWriter {
 public:
  GgufWriter(std::filesystem::path path, const GgufEntries& metadata, std::vector<GgufSpec> specs);
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // The next bytes of the tensors, one after the other: a call's are all of the same tensor, and may be a part of it.
  void append(std::span<const std::byte> bytes);
  // Fails when bytes are missing.
  void finish();

 private:
  void write(std::string_view bytes);
  void pad();

  std::filesystem::path path_;
  std::vector<GgufSpec> specs_;
  size_t next_ = 0;       // the tensor whose bytes come
  uint64_t written_ = 0;  // bytes of it
  uint64_t offset_ = 0;   // bytes of the file
  int descriptor_ = -1;
};

}  // namespace hexad::tensorfile
