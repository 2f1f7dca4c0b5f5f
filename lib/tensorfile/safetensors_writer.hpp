// Safetensors, written: a tensor at a time, in any order, so that a model need not fit in memory.
// Files have temporary names until finish(): what was there before stays whole until then. ".NAME.growing" is appended
// to alone (growing_sums.hpp), as long as tensors come in the order of their specs; ".NAME.partial" is filled anyhow. A
// writer that is destroyed without finish() removes them. Nothing is synced: who needs it on the disk calls sync_tree
// (lib/base/file.hpp), beside other work if that is better. Errors are Error(data) with path and reason (a full disk),
// and Error(internal) for tensors that are not as announced. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tensorfile/safetensors.hpp"

namespace hexad::tensorfile {

// One file, its tensors in the order of `specs`.
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path path, const std::vector<TensorSpec>& specs,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
  ~SafetensorsWriter();
  SafetensorsWriter(SafetensorsWriter&& other) noexcept;

  // What was announced of a tensor that is still to come. Fails for another name, and for one that was written.
  const TensorSpec& awaited(std::string_view name) const;
  // `data`: exactly as many bytes as its spec has.
  void write(std::string_view name, std::span<const std::byte> data);
  // Fails when a tensor was not written.
  void require_complete() const;
  // require_complete(), and gives the file its name.
  void finish();

 private:
  struct Place {
    TensorSpec spec;
    uint64_t begin;  // byte in the file
    bool written = false;
  };
  const Place& awaited_place(std::string_view name) const;
  void stop_growing();

  std::filesystem::path path_, temporary_;  // temporary_: "" when it is gone
  std::optional<uint64_t> appended_;        // bytes, as long as every tensor came behind the one before
  std::map<std::string, Place, std::less<>> places_;
  int descriptor_ = -1;
};

// A model in `directory`, which is made: model.safetensors, or when it exceeds `max_shard_bytes` (in tensors' bytes)
// the shards model-00001-of-0000N.safetensors with model.safetensors.index.json. finish() removes weight files of an
// earlier save that the new ones do not replace.
class ShardedWriter {
 public:
  ShardedWriter(std::filesystem::path directory, const std::vector<TensorSpec>& specs,
                uint64_t max_shard_bytes = 5'000'000'000);

  // As SafetensorsWriter.
  const TensorSpec& awaited(std::string_view name) const;
  void write(std::string_view name, std::span<const std::byte> data);
  void finish();

 private:
  size_t shard_of(std::string_view name) const;
  std::string file_name(size_t shard) const;
  void write_index() const;
  void remove_older() const;

  std::filesystem::path directory_;
  std::vector<SafetensorsWriter> shards_;
  std::map<std::string, size_t, std::less<>> shard_of_;
  uint64_t bytes_ = 0;
};

}  // namespace hexad::tensorfile
