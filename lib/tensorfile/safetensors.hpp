// Safetensors: the files that weights travel in. Reading is by mmap (nothing is copied until asked for) and checks the
// whole header first; a hostile file gives an error, never a crash. Writing: safetensors_writer.hpp.
// Format: u64 length, JSON header {name: {dtype, shape, data_offsets}}, data (little-endian, row-major, no holes).
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/tensorfile/mapped_file.hpp"
#include "lib/tensorfile/safetensors_dtype.hpp"

namespace hexad::tensorfile {

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;

  uint64_t elements() const;  // 1 for a scalar
  uint64_t bytes() const { return elements() * dtype_size(dtype); }
};

struct SafetensorsEntry : TensorSpec {
  std::span<const std::byte> data;         // into the mapped file: valid while `file` lives
  std::shared_ptr<const MappedFile> file;  // null in a header parsed from bytes alone
};

// One file, or all shards of a directory (model.safetensors.index.json) as one. Immutable; copies share the mapping.
class Safetensors {
 public:
  // `path`: a .safetensors file, an index .json, or a directory that holds model.safetensors or, without it,
  // model.safetensors.index.json (as transformers chooses). What the index does not list is left out. Throws
  // Error(data) for what is no such thing.
  static Safetensors open(const std::filesystem::path& path, Pages pages = Pages::read_only);

  const std::vector<SafetensorsEntry>& tensors() const { return entries_; }  // by shard, then by offset
  const SafetensorsEntry* find(std::string_view name) const;                 // nullptr when absent
  // Fails, naming the file and the nearest name, when absent.
  const SafetensorsEntry& at(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  // `belongs`: says of a name whether the model has it.
  void add_file(const std::filesystem::path& path, Pages pages, const std::function<bool(const std::string&)>& belongs);

  std::filesystem::path path_;
  std::vector<SafetensorsEntry> entries_;
  std::unordered_map<std::string, size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

// The values of a floating-point tensor as fp32 (f64 is rounded). Fails on an integer dtype.
std::vector<float> to_float32(const SafetensorsEntry& entry);

// Fails, naming tensor and first position, when a floating-point tensor holds nan or inf.
void require_finite(const SafetensorsEntry& entry, const std::filesystem::path& origin);

}  // namespace hexad::tensorfile
