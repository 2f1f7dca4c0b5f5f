// What the names in a declaration's expressions stand for.
#pragma once
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "core/config/world.hpp"
#include "lib/expression/expression.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config {

// A value of the configuration in an expression; a map is the list of its keys.
expression::Value expression_value(const yaml::Node& node);
expression::Value json_value(const nlohmann::ordered_json& json);

// `world.*`, `model.*` (what is not in it cannot be known), `run.*` (the whole configuration), `written.*` (whether the
// key of the block stands in a file or an override, and is no default), and anything else as a key of
// the block, null where it is absent. Keeps references to all it was made of.
class Scope {
 public:
  // `model`: config.json of the run's model with hf_config_overrides, and the names of model_names(); null: not at
  // hand. `refused`: paths of keys whose values are wrong by themselves; they cannot be known, so that nothing more is
  // said of them.
  Scope(const yaml::Node& root, std::string block, const World& world, const nlohmann::ordered_json& model,
        std::set<std::string> refused = {})
      : root_(root), block_(std::move(block)), world_(world), model_(model), refused_(std::move(refused)) {}

  std::optional<expression::Value> find(std::string_view path) const;
  const yaml::Node& root() const { return root_; }
  const std::string& block() const { return block_; }
  const World& world() const { return world_; }
  const nlohmann::ordered_json& model() const { return model_; }

 private:
  std::optional<expression::Value> world_value(std::string_view name) const;

  const yaml::Node& root_;
  std::string block_;
  const World& world_;
  const nlohmann::ordered_json& model_;
  std::set<std::string> refused_;
};

// The config.json that `model.*` reads: of policy.model_name (or of the block's own model), with its overrides, and
// with the sizes that families name in several ways (num_experts, num_key_value_heads, moe_intermediate_size,
// has_experts, latent_attention, shared_experts, linear_bias, score_function, experts_per_token, expert_groups,
// groups_per_token) under one name each. Null where there is none.
nlohmann::ordered_json model_names(const yaml::Node& root);

}  // namespace hexad::config
