// Writes LibTorch tensors as Hugging Face safetensors, one at a time, in shards of bounded size with an index.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::tensorfile {
class ShardedWriter;
}

namespace hexad::modeling {

struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType dtype;
};

// tensorfile::ShardedWriter, fed with tensors: its order, its temporary names, its texts as Error of modeling.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& dir, const std::vector<TensorSpec>& specs,
                    uint64_t max_shard_bytes = 5ull << 30);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Any device and dtype: converted to the spec's. Throws Error on a wrong shape, unknown or repeated name, full disk.
  void write(const std::string& name, const at::Tensor& tensor);
  // Every tensor must have been written. Gives the files their names, and syncs nothing: whoever asked for the save has
  // it synced, beside other work.
  void finish();

 private:
  std::filesystem::path dir_;
  std::unique_ptr<tensorfile::ShardedWriter> files_;
};

}  // namespace hexad::modeling
