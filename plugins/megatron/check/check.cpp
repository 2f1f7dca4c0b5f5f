#include "plugins/megatron/check/check.hpp"

extern "C" int32_t hexad_plugin_check_v1(const hexad_check_host* host, const char* input) {
  using nlohmann::json;
  try {
    const json given = json::parse(input);
    const json keys = given.at("section").value("megatron_cfg", json::object());
    const hexad::megatron_check::Check check{host, keys.is_object() ? keys : json::object(), given.at("world"),
                                             given.at("model")};
    check_rank_order(check);
    check_layout(check);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
