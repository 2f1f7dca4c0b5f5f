// One compute call of a loss as it was in a run: what went in, what came out. The file is a safetensors file, so that
// other tools read it too.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <hexad/abi.h>
#include <nlohmann/json.hpp>

namespace hexad::plugin {

struct RecordedArray {
  std::string name;  // "cu_seqlens", "input.NAME", "grad.NAME", "loss", "metrics"
  DLDataType dtype;  // f32, f64, i64, i32 or u8
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;  // row-major
};

struct Recording {
  // {step, plugin, name, global_valid_tokens, global_valid_sequences, padded_length, section}; `section` is loss_fn.
  nlohmann::ordered_json about;
  std::vector<RecordedArray> arrays;

  void add(std::string name, const DLTensor& tensor);  // contiguous, in host memory; copied
  // Null if there is none.
  const RecordedArray* find(const std::string& name) const;
};

// Makes the folders above. Throws Error(data).
void write_recording(const std::filesystem::path& file, const Recording& recording);
// Throws Error(data) for what is no such file.
Recording read_recording(const std::filesystem::path& file);

}  // namespace hexad::plugin
