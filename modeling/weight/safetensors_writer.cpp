#include "modeling/weight/safetensors_writer.hpp"

#include <ATen/Functions.h>

#include "lib/tensorfile/safetensors_writer.hpp"
#include "modeling/error.hpp"
#include "modeling/weight/stored_dtype.hpp"

namespace hexad::modeling {

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& dir, const std::vector<TensorSpec>& specs,
                                     uint64_t max_shard_bytes)
    : dir_(dir) {
  std::vector<tensorfile::TensorSpec> stored;
  for (const TensorSpec& spec : specs) stored.push_back({spec.name, stored_dtype(spec.dtype), spec.shape});
  with_tensorfile([&] { files_ = std::make_unique<tensorfile::ShardedWriter>(dir, stored, max_shard_bytes); });
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(const std::string& name, const at::Tensor& tensor) {
  with_tensorfile([&] {
    const tensorfile::TensorSpec& spec = files_->awaited(name);
    if (tensor.sizes() != at::IntArrayRef(spec.shape)) {
      fail("{}: tensor '{}' has shape [{}], wanted [{}]", dir_.string(), name, fmt::join(tensor.sizes(), ", "),
           fmt::join(spec.shape, ", "));
    }
    const auto options = at::TensorOptions(at::kCPU).dtype(*scalar_type(spec.dtype));
    const at::Tensor host = tensor.detach().to(options).contiguous();
    files_->write(name, {static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()});
  });
}

void SafetensorsWriter::finish() {
  with_tensorfile([&] { files_->finish(); });
}

}  // namespace hexad::modeling
