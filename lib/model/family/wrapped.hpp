// Models of more than text.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::model {

// The sentence about a config.json that wraps the one of a text model, as multimodal models do; "" for any other.
std::string wrapped_text(const nlohmann::json& config);

}  // namespace hexad::model
