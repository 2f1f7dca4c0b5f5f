// How rotary embeddings are scaled, in config.json and in a GGUF file.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/convert/gguf_architecture.hpp"
#include "lib/tensorfile/gguf_writer.hpp"

namespace hexad::convert {

// Llama 3's tensor of divisors, one for each frequency.
inline constexpr const char* kRopeDivisors = "rope_freqs.weight";

// config.json's "rope_scaling": null when there is none. Fails on a scaling that it cannot express.
nlohmann::ordered_json gguf_rope_scaling(const tensorfile::Gguf& gguf, const std::string& arch, int64_t head_dim,
                                         double theta);

// The same of any config.json's "rope_scaling" or "rope_parameters", in that form. Fails, naming `origin` and the key,
// on what llama.cpp's `architecture` cannot be told.
nlohmann::ordered_json known_rope_scaling(const nlohmann::ordered_json& config, const GgufArchitecture& architecture,
                                          const std::string& origin);

// The metadata of such a scaling, and the divisors of Llama 3's; nothing of none.
tensorfile::GgufEntries rope_entries(const nlohmann::ordered_json& scaling, const std::string& arch);
std::vector<float> rope_divisors(const nlohmann::ordered_json& scaling, int64_t head_dim, double theta);

}  // namespace hexad::convert
