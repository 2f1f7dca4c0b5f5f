// Safetensors: the files that weights travel in. Reading is by mmap (nothing is copied until asked for) and checks the
// whole header first; a hostile file gives an error, never a crash.
// Format: u64 length, JSON header {name: {dtype, shape, data_offsets}}, data (little-endian, row-major, no holes).
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/tensorfile/safetensors_dtype.hpp"
#include "lib/tensorfile/safetensors_mapping.hpp"

namespace hexad::tensorfile {

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;

  uint64_t elements() const;  // 1 for a scalar
  uint64_t bytes() const { return elements() * dtype_size(dtype); }
};

struct SafetensorsEntry : TensorSpec {
  std::span<const std::byte> data;  // into the mapped file; valid while the Safetensors (or a copy) lives
};

// One file, or all shards of a directory (model.safetensors.index.json) as one. Immutable; copies share the mapping.
class Safetensors {
 public:
  // `path`: a .safetensors file, an index .json, or a directory that holds model.safetensors(.index.json).
  static Safetensors open(const std::filesystem::path& path);

  const std::vector<SafetensorsEntry>& tensors() const { return entries_; }  // by shard, then by offset
  const SafetensorsEntry* find(std::string_view name) const;                 // nullptr when absent
  // Fails, naming the file and the nearest name, when absent.
  const SafetensorsEntry& at(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void add_file(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<SafetensorsEntry> entries_;
  std::unordered_map<std::string, size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

// The values of a floating-point tensor as fp32 (f64 is rounded). Fails on an integer dtype.
std::vector<float> to_float32(const SafetensorsEntry& entry);

// Fails, naming tensor and first position, when a floating-point tensor holds nan or inf.
void require_finite(const SafetensorsEntry& entry, const std::filesystem::path& origin);

// Writes one file in the order of `specs`, a tensor at a time, so that a model need not fit in memory. The file is
// complete only after finish(); the caller makes it atomic by writing beside and renaming.
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path path, std::vector<TensorSpec> specs,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The data of the next tensor of `specs`; `data` must be exactly its size.
  void append(std::span<const std::byte> data);
  // Flushes to disk (fsync). Fails when tensors are missing or the disk is full.
  void finish();

 private:
  std::filesystem::path path_;
  std::vector<TensorSpec> specs_;
  size_t next_ = 0;
  int descriptor_ = -1;
};

// Writes a model into `directory`: model.safetensors, or when it exceeds `max_shard_bytes` the shards
// model-00001-of-0000N.safetensors with model.safetensors.index.json. Tensors are appended in the order of `specs`.
class ShardedWriter {
 public:
  ShardedWriter(std::filesystem::path directory, std::vector<TensorSpec> specs,
                uint64_t max_shard_bytes = 5'000'000'000);
  void append(std::span<const std::byte> data);
  void finish();

 private:
  void open_shard();
  std::string file_name(size_t shard) const;

  std::filesystem::path directory_;
  std::vector<std::vector<TensorSpec>> shards_;
  size_t shard_ = 0, written_ = 0;
  std::unique_ptr<SafetensorsWriter> writer_;
};

}  // namespace hexad::tensorfile
