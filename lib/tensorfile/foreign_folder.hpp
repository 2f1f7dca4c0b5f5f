// Model folders that hold something else than plain weights of a text model: each named as what it is, with what to do.
#pragma once
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::tensorfile {

// How config.json says that the weights are quantised: "gptq, 4 bits"; "" where it does not.
std::string quantization_of(const nlohmann::json& config);

// What a file beside config.json says of that, with its name ("hf_quant_config.json: FP8"), as NVIDIA's ModelOpt and
// older versions of AutoGPTQ and AutoAWQ write it; "" where there is none.
std::string quantization_beside(const std::filesystem::path& folder);

// The sentence about such weights in `folder`. `quantization`: the file that says so, and what.
std::string quantized_text(const std::filesystem::path& folder, const std::string& quantization);

// What a folder without model.safetensors has in its place (an adapter, pickled weights, a GGUF file ...), as the end
// of a sentence: "it holds pytorch_model.bin, ..."; "" where there is nothing of that kind.
std::string other_weights(const std::filesystem::path& folder);

}  // namespace hexad::tensorfile
