// The check library of countdown: which characters a tag may have, which expressions cannot say.
#include <hexad/check.h>

#include <nlohmann/json.hpp>

extern "C" int32_t hexad_plugin_check_v1(const hexad_check_host* host, const char* input) {
  try {
    const auto keys = nlohmann::json::parse(input).at("section").value("plugin_config", nlohmann::json::object());
    if (!keys.is_object() || !keys.contains("tag") || !keys.at("tag").is_string()) return 0;  // said of its type
    const auto tag = keys.at("tag").get<std::string>();
    if (tag.find_first_of("<>/") != tag.npos)
      host->finding(host->ctx, HEXAD_CHECK_ERROR, "plugin_config.tag",
                    ("must be 1 to 64 characters without <, > and /, got '" + tag + "'").c_str());
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
