// `hexad convert SRC DST`: model files into a Hugging Face directory.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/tensorfile/safetensors_dtype.hpp"

namespace hexad::convert {

struct ConvertOptions {
  std::optional<tensorfile::DType> dtype;    // of the weights; absent: float32 from GGUF, unchanged from a HF directory
  uint64_t max_shard_bytes = 5'000'000'000;  // a larger model is split into shards with an index
};

struct ConvertResult {
  std::string from;  // "gguf", "huggingface" or "checkpoint"
  size_t tensors = 0;
  uint64_t parameters = 0;
  uint64_t bytes = 0;                   // of the weights written
  std::vector<std::string> notes = {};  // what was guessed
};

// SRC is a .gguf file, a directory that holds exactly one .gguf, a Hugging Face directory (config.json and
// safetensors), or a step_N directory of a run's checkpoints. DST must not exist, or be an empty directory: it is
// written beside and renamed, so that it is there whole or not at all. Weights that are missing, of a wrong shape or
// not finite are refused, and so is a link in the directory that leads out of it (lib/base/file/own_file.hpp). Throws
// hexad::Error.
ConvertResult convert(const std::filesystem::path& source, const std::filesystem::path& destination,
                      const ConvertOptions& options = {});

}  // namespace hexad::convert
