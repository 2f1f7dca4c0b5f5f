// The check library of native: models that it refuses to load. Its rules, and other families, are in keys.yaml.
#include <algorithm>

#include "lib/model/family/families.hpp"
#include "modeling/check/model.hpp"

namespace {

bool is_of_known_family(const nlohmann::json& model) {
  if (!model.is_object()) return false;
  const nlohmann::json type = model.value("model_type", nlohmann::json());
  return std::ranges::any_of(hexad::model::families(), [&](const auto& family) { return type == family.model_type; });
}

}  // namespace

extern "C" int32_t hexad_plugin_check_v1(const hexad_check_host* host, const char* input) {
  try {
    const nlohmann::json given = nlohmann::json::parse(input);
    if (is_of_known_family(given.at("model"))) hexad::modeling::checked_model(*host, given);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
