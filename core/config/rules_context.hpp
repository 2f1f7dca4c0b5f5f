// How context-parallel ranks exchange keys and values: cp_comm_type and its sizes, for every backend that has them.
#pragma once
#include "core/config/rules.hpp"

namespace hexad::config {

struct ContextExchangeRules {
  RuleContext& c;
  std::string section;             // that holds the keys: "policy.megatron_cfg"
  const model::ModelShape& model;  // without fields where the model's config.json is not at hand
  int64_t cp = 1, tp = 1;

  // Rule 22 of Megatron's, and which heads can be shared out.
  void check() const;

 private:
  std::string path(const char* name) const { return section + "." + name; }
  std::vector<std::string> types() const;
  std::optional<std::vector<int64_t>> sizes() const;
  void check_heads(int64_t ranks) const;
  void check_hierarchy(bool wanted) const;
};

}  // namespace hexad::config
