// Weights of a Hugging Face directory by name, as LibTorch tensors: views of what lib/tensorfile has mapped and
// checked. Nothing is read before it is touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::tensorfile {
class MappedFile;
}

namespace hexad::modeling {

struct StoredTensor {
  std::vector<int64_t> shape;
  at::ScalarType dtype;
  std::string file;                 // path, for messages
  std::span<const std::byte> data;  // in `mapping`
  std::shared_ptr<const tensorfile::MappedFile> mapping;
};

// Does `dir` hold safetensors (model.safetensors or model.safetensors.index.json)?
bool has_weights(const std::filesystem::path& dir);

// Reads a .safetensors file, or a directory with model.safetensors or model.safetensors.index.json and its shards.
// Throws Error with the text of tensorfile::Safetensors::open, and for a dtype that no model here is made of.
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
  const StoredTensor& entry(const std::string& name) const;

  std::string origin_;
  std::map<std::string, StoredTensor> entries_;
};

}  // namespace hexad::modeling
