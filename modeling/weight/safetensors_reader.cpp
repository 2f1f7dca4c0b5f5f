#include "modeling/weight/safetensors_reader.hpp"

#include <ATen/Functions.h>

#include <cstring>

#include "lib/tensorfile/safetensors.hpp"
#include "lib/weights/headers.hpp"
#include "modeling/error.hpp"
#include "modeling/weight/stored_dtype.hpp"

namespace hexad::modeling {

namespace {

tensorfile::Safetensors opened(const std::filesystem::path& path) {
  return with_tensorfile([&] {
    tensorfile::Safetensors stored = tensorfile::Safetensors::open(path, tensorfile::Pages::copy_on_write);
    weights::require_types(stored);
    return stored;
  });
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : SafetensorsReader(path, opened(path)) {}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& origin, const tensorfile::Safetensors& stored)
    : origin_(origin.string()) {
  for (const tensorfile::SafetensorsEntry& entry : stored.tensors())
    entries_[entry.name] = {entry.shape, scalar_type(entry.dtype).value(), entry.file->path().string(), entry.data,
                            entry.file};
}

const StoredTensor& SafetensorsReader::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("{}: there is no tensor '{}'", origin_, name);
  return found->second;
}

at::Tensor SafetensorsReader::tensor(const std::string& name) const {
  const StoredTensor& stored = entry(name);
  if (stored.shape.empty()) return rows(name, 0, 1).reshape({});
  return rows(name, 0, stored.shape[0]);
}

at::Tensor SafetensorsReader::rows(const std::string& name, int64_t begin, int64_t end) const {
  const StoredTensor& stored = entry(name);
  std::vector<int64_t> shape = stored.shape.empty() ? std::vector<int64_t>{1} : stored.shape;
  if (begin < 0 || begin > end || end > shape[0]) {
    fail("{}: rows {} to {} of '{}' were asked for, which has {}", stored.file, begin, end, name, shape[0]);
  }
  const size_t row_bytes = shape[0] ? stored.data.size() / static_cast<size_t>(shape[0]) : 0;
  shape[0] = end - begin;
  const at::TensorOptions options(stored.dtype);
  // The mapping is copy-on-write, so that a view may be written to.
  std::byte* data = const_cast<std::byte*>(stored.data.data()) + row_bytes * static_cast<size_t>(begin);
  const size_t element = c10::elementSize(stored.dtype);
  if (reinterpret_cast<uintptr_t>(data) % element != 0) {  // the format does not promise alignment
    at::Tensor copy = at::empty(shape, options);
    if (copy.nbytes() > 0) std::memcpy(copy.mutable_data_ptr(), data, copy.nbytes());
    return copy;
  }
  return at::from_blob(
      data, shape, [mapping = stored.mapping](void*) {}, options);
}

SafetensorsReader open_weights(const std::filesystem::path& dir, const ModelConfig& config,
                               const std::vector<WeightInfo>& table, std::vector<std::string>* notices) {
  const weights::Weights opened =
      with_tensorfile([&] { return weights::open(dir, config, table, tensorfile::Pages::copy_on_write); });
  if (notices) notices->insert(notices->end(), opened.notices.begin(), opened.notices.end());
  return {dir, opened.stored};
}

}  // namespace hexad::modeling
