// A folder of a model as one GGUF file, as llama.cpp's converter writes it.
#pragma once
#include <filesystem>
#include <optional>

#include "app/convert/convert.hpp"
#include "app/convert/part.hpp"

namespace hexad::convert {

inline bool is_gguf(const std::filesystem::path& destination) { return destination.extension() == ".gguf"; }

// `tokenizer`: the part with the tokenizer's files, if it is another one. Norms, biases and routers stay float32; with
// q8_0 a matrix whose rows do not divide into blocks is stored as float16, and a note says so.
ConvertResult convert_to_gguf(const Part& model, const std::optional<Part>& tokenizer,
                              const std::filesystem::path& destination, const ConvertOptions& options);

}  // namespace hexad::convert
