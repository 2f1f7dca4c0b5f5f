#include "lib/model/family/wrapped.hpp"

#include <fmt/format.h>

namespace hexad::model {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string wrapped_text(const json& config) {
  if (!config.is_object() || config.contains("hidden_size")) return "";
  for (const char* key : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_object()) continue;
    const std::string inner = text_at(*found, "model_type"), outer = text_at(config, "model_type");
    return fmt::format(
        "'{}' is a model of more than text: its language model{} stands in '{}' of the config. Such models are not "
        "available. Nearest: the text model of the same family, in a folder of its own",
        outer.empty() ? "a model without model_type" : outer, inner.empty() ? "" : " (" + inner + ")", key);
  }
  return "";
}

}  // namespace hexad::model
