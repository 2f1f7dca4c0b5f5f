// Writes weights as Hugging Face safetensors, one tensor at a time, in shards of bounded size with an index.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType dtype;
};

// The layout is fixed by `specs` (in order), so tensors may be written in any order and only one need be in memory.
// Files appear under temporary names and are renamed by finish(): a directory that had weights keeps them, whole, until
// then. Destroyed without finish(): the temporary files are removed. Not thread-safe.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& dir, const std::vector<TensorSpec>& specs,
                    uint64_t max_shard_bytes = 5ull << 30);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Any device and dtype: converted to the spec's. Throws Error on a wrong shape, unknown or repeated name, full disk.
  void write(const std::string& name, const at::Tensor& tensor);
  // Every tensor must have been written. Renames (whoever asked has them synced, beside other work); removes weight files of an earlier save that the
  // new ones do not replace.
  void finish();

 private:
  struct Shard;
  struct Place {
    size_t shard;
    uint64_t begin;  // byte in the file
    TensorSpec spec;
    bool written = false;
  };
  void open_shard(const std::string& name, const std::vector<TensorSpec>& specs);
  void write_index() const;
  void remove_older(const std::set<std::string>& kept) const;

  std::filesystem::path dir_;
  std::vector<Shard> shards_;
  std::map<std::string, Place> places_;
  uint64_t total_bytes_ = 0;
};

}  // namespace hexad::modeling
