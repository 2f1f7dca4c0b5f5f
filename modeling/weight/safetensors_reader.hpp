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

#include "modeling/family/weight_table.hpp"

namespace hexad::tensorfile {
class MappedFile;
class Safetensors;
}  // namespace hexad::tensorfile

namespace hexad::modeling {

struct StoredTensor {
  std::vector<int64_t> shape;
  at::ScalarType dtype;
  std::string file;                 // path, for messages
  std::span<const std::byte> data;  // in `mapping`
  std::shared_ptr<const tensorfile::MappedFile> mapping;
};

// Reads a .safetensors file, or a directory with model.safetensors or model.safetensors.index.json and its shards.
// Throws Error with the text of tensorfile::Safetensors::open, and for a dtype that no model here is made of.
// Tensors keep the mapping alive; the reader may be destroyed first. Thread-safe after construction.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);
  // Of what was opened with Pages::copy_on_write and has types of models alone (lib/weights). `origin`: for messages.
  SafetensorsReader(const std::filesystem::path& origin, const tensorfile::Safetensors& stored);

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

// The weights of a model's folder, whose headers are as `config` and `table` ask (weights::open of lib/weights, whose
// errors leave as Error). Appends its notices to `notices`, unless null.
SafetensorsReader open_weights(const std::filesystem::path& dir, const ModelConfig& config,
                               const std::vector<WeightInfo>& table, std::vector<std::string>* notices = nullptr);

}  // namespace hexad::modeling
