// What the check library of megatron looks at: the model's config.json, and rules of Megatron-Core that take a text
// apart (hexad/check.h). Their numbers are those of its transformer_config.py, arguments.py and parallel_state.py; the
// other rules are in keys.yaml.
#pragma once
#include <hexad/check.h>

#include <string>

#include <nlohmann/json.hpp>

namespace hexad::megatron_check {

// The configuration, and where findings go.
struct Check {
  const hexad_check_host* host;
  nlohmann::json keys;  // megatron_cfg
  nlohmann::json world, model;

  // Keys by their names in megatron_cfg.
  void error(const std::string& key, const std::string& message) const {
    host->finding(host->ctx, HEXAD_CHECK_ERROR, ("megatron_cfg." + key).c_str(), message.c_str());
  }
  void name(const char* name, int64_t value) const { host->name(host->ctx, name, std::to_string(value).c_str()); }
  // A size of at least 1; 1 where the key holds no such number, which is reported elsewhere.
  int64_t size(const char* key) const {
    const nlohmann::json value = keys.value(key, nlohmann::json());
    return value.is_number_integer() && value.get<int64_t>() >= 1 ? value.get<int64_t>() : 1;
  }
};

void check_rank_order(const Check& check);  // rule 3
void check_layout(const Check& check);      // rule 16; gives the rules `layout_stages`

}  // namespace hexad::megatron_check
