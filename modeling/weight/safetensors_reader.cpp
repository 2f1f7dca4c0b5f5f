#include "modeling/weight/safetensors_reader.hpp"

#include <ATen/Functions.h>

#include <cstring>

#include "lib/tensorfile/safetensors.hpp"
#include "modeling/error.hpp"
#include "modeling/weight/stored_dtype.hpp"

namespace hexad::modeling {

bool has_weights(const std::filesystem::path& dir) {
  return std::filesystem::exists(dir / "model.safetensors") ||
         std::filesystem::exists(dir / "model.safetensors.index.json");
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : origin_(path.string()) {
  const tensorfile::Safetensors stored =
      with_tensorfile([&] { return tensorfile::Safetensors::open(path, tensorfile::Pages::copy_on_write); });
  for (const tensorfile::SafetensorsEntry& entry : stored.tensors()) {
    const std::string file = entry.file->path().string();
    const std::optional<at::ScalarType> dtype = scalar_type(entry.dtype);
    if (!dtype) {
      fail(
          "{}: tensor \"{}\" has dtype {}, wanted F32, BF16, F16, F64, I64, I32, I16, I8, U8 or BOOL: take the model "
          "in "
          "bfloat16 or float32",
          file, entry.name, tensorfile::dtype_name(entry.dtype));
    }
    entries_[entry.name] = {entry.shape, *dtype, file, entry.data, entry.file};
  }
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

}  // namespace hexad::modeling
