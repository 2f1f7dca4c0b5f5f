// Weights of a Hugging Face directory by name, through mmap: nothing is read before it is touched.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

class MappedFile;

struct StoredTensor {
  std::vector<int64_t> shape;
  at::ScalarType dtype;
  std::string file;             // path, for messages
  uint64_t begin = 0, end = 0;  // bytes in the file
};

// Reads a .safetensors file, or a directory with model.safetensors or model.safetensors.index.json and its shards.
// Throws Error naming the file: missing, truncated, malformed header, unknown dtype, shard lacking a tensor.
// Tensors keep the mapping alive; the reader may be destroyed first. Thread-safe after construction.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);

  const std::string& origin() const { return origin_; }
  const std::map<std::string, StoredTensor>& entries() const { return entries_; }
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  // A CPU view of the file (private mapping: writing to it does not change the file) in the stored dtype.
  at::Tensor tensor(const std::string& name) const;
  // Rows [begin, end) of dimension 0; the other rows are not read.
  at::Tensor rows(const std::string& name, int64_t begin, int64_t end) const;

 private:
  void add_file(const std::filesystem::path& file, const std::vector<std::string>* expected);
  const StoredTensor& entry(const std::string& name) const;

  std::string origin_;
  std::map<std::string, StoredTensor> entries_;
  std::map<std::string, std::shared_ptr<MappedFile>> files_;
};

}  // namespace hexad::modeling
