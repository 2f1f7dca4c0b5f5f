// The check library of dtensor: models that it refuses to load. Its rules are in keys.yaml.
#include "modeling/check/model.hpp"

extern "C" int32_t hexad_plugin_check_v1(const hexad_check_host* host, const char* input) {
  try {
    hexad::modeling::checked_model(*host, nlohmann::json::parse(input));
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
