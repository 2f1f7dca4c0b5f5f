// `hexad convert SRC DST`: model files into a Hugging Face directory, or into one GGUF file.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/tensorfile/safetensors_dtype.hpp"

namespace hexad::convert {

struct ConvertOptions {
  // Of the weights. Absent: float32 from GGUF, unchanged from a HF directory into another, and into GGUF what llama.cpp
  // takes, float16 for weights in float16 and bfloat16 for others.
  std::optional<tensorfile::DType> dtype = {};
  bool q8_0 = false;                         // into GGUF, instead of a dtype: blocks of 32 values in 34 bytes
  uint64_t max_shard_bytes = 5'000'000'000;  // a larger model is split into shards with an index
};

struct ConvertResult {
  std::string from;    // "gguf", "huggingface" or "checkpoint"
  size_t tensors = 0;  // that were written
  uint64_t parameters = 0;
  uint64_t bytes = 0;                   // of the weights written
  std::vector<std::string> notes = {};  // what was guessed, and what the file cannot say
};

// SRC is a .gguf file, a directory that holds exactly one .gguf, a Hugging Face directory (config.json and
// safetensors), or a step_N directory of a run's checkpoints. DST is a directory, or of a directory or checkpoint a
// file whose name ends in .gguf. It must not exist, or be an empty directory: it is written beside and renamed, so that
// it is there whole or not at all. Memory holds one tensor, of a GGUF file that is written a few rows. Weights that are
// missing, of a wrong shape or not finite are refused, and so is a link in the directory that leads out of it
// (lib/base/file/own_file.hpp). Throws hexad::Error.
ConvertResult convert(const std::filesystem::path& source, const std::filesystem::path& destination,
                      const ConvertOptions& options = {});

}  // namespace hexad::convert
