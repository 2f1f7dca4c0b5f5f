// A config.json of any version of transformers in the one form that gguf_config makes.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::convert {

// Fails, naming `origin` (the file) and the key, for a family that is not in gguf_architecture.hpp, for a size that is
// missing or impossible, and for whatever changes the model's outputs and that llama.cpp's architecture has not: a
// sliding window, layers without experts, another activation, a rope scaling, quantised weights.
nlohmann::ordered_json known_config(const nlohmann::ordered_json& config, const std::string& origin);

}  // namespace hexad::convert
