#include "core/config/declaration/scope.hpp"

#include <filesystem>

#include "core/config/load/defaults.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/hub/hub.hpp"
#include "lib/model/model_shape.hpp"
#include "lib/model/parameter_count.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

std::optional<expression::Value> known(const std::optional<int64_t>& number) {
  return number ? std::optional(expression::Value(*number)) : std::nullopt;
}

bool take_prefix(std::string_view& path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return false;
  path.remove_prefix(prefix.size());
  return true;
}

template <typename T>
void put(Json& json, const char* name, const std::optional<T>& value) {
  json.erase(name);
  if (value) json[name] = *value;
}

void put_parameters(Json& config) {
  const std::optional<model::ParameterCount> count = model::parameter_count(config);
  const auto put_count = [&](const char* name, int64_t of_model) {
    put(config, name, count ? std::optional(of_model) : std::nullopt);
  };
  const model::ParameterCount all = count.value_or(model::ParameterCount());
  put_count("parameters", all.total());
  put_count("embedding_parameters", all.embedding);
  put_count("head_parameters", all.head);
  put_count("key_value_parameters", all.layers * all.key_value);
  put_count("uncut_parameters", all.uncut());
  put_count("dense_mlp_parameters", all.dense_layers() * all.dense_mlp);
  put_count("router_parameters", all.expert_layers * all.router);
  put_count("expert_parameters", all.all_experts());
  put_count("shared_expert_parameters", all.expert_layers * all.shared);
  put_count("expert_layers", all.expert_layers);
  put_count("first_expert_layer", all.first_expert_layer);
  put_count("query_size", all.query_size);
  put_count("key_size", all.key_size);
  put_count("query_norms", all.query_norm ? 1 : 0);
}

}  // namespace

expression::Value json_value(const Json& json) {
  if (json.is_boolean()) return expression::Value(json.get<bool>());
  if (json.is_number_integer()) return expression::Value(json.get<int64_t>());
  if (json.is_number_float()) return expression::Value(json.get<double>());
  if (json.is_string()) return expression::Value(json.get<std::string>());
  expression::Value::List list;
  if (json.is_array())
    for (const Json& item : json) list.push_back(json_value(item));
  if (json.is_object())
    for (const auto& entry : json.items()) list.push_back(expression::Value(entry.key()));
  return json.is_null() ? expression::Value() : expression::Value(std::move(list));
}

expression::Value expression_value(const yaml::Node& node) {
  if (node.is_bool()) return expression::Value(node.as_bool());
  if (node.is_int()) return expression::Value(node.as_int());
  if (node.is_double()) return expression::Value(node.as_double());
  if (node.is_string()) return expression::Value(node.as_string());
  if (node.is_null()) return expression::Value();
  expression::Value::List list;
  if (node.is_list())
    for (const yaml::Node& item : node.items()) list.push_back(expression_value(item));
  else
    for (const auto& entry : node.entries()) list.push_back(expression::Value(entry.first));
  return expression::Value(std::move(list));
}

std::optional<expression::Value> Scope::world_value(std::string_view name) const {
  if (name == "ranks") return known(world_.ranks);
  if (name == "train_ranks") return known(world_.train_ranks);
  if (name == "generate_ranks") return known(world_.generate_ranks);
  if (name == "nodes") return known(world_.nodes);
  if (name == "ranks_per_node") return known(world_.ranks_per_node);
  return std::nullopt;
}

std::optional<expression::Value> Scope::find(std::string_view path) const {
  if (take_prefix(path, "world.")) return world_value(path);
  if (take_prefix(path, "model.")) {
    if (!model_.is_object()) return std::nullopt;
    const auto found = model_.find(std::string(path));
    return found == model_.end() ? std::nullopt : std::optional(json_value(*found));
  }
  if (take_prefix(path, "written.")) {
    const yaml::Node* node = root_.find(block_ + "." + std::string(path));
    return expression::Value(node && node->location().file != kDefaultOrigin);
  }
  const bool absolute = take_prefix(path, "run.");
  const std::string full = absolute ? std::string(path) : block_ + "." + std::string(path);
  if (refused_.contains(full)) return std::nullopt;
  const yaml::Node* node = root_.find(full);
  return node ? expression_value(*node) : expression::Value();
}

Json model_names(const yaml::Node& root) {
  const yaml::Node* name = root.find("policy.model_name");
  if (!name || !name->is_string()) return nullptr;
  const std::filesystem::path file = hub::model_folder(name->as_string()) / "config.json";
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(file, unreadable)) return nullptr;
  Json config = try_parse_json<Json>(read_file(file));
  if (!config.is_object()) return nullptr;
  const yaml::Node* overrides = root.find("policy.hf_config_overrides");
  if (overrides && overrides->is_map()) config.merge_patch(overrides->to_json());
  const model::ModelShape shape = model::model_shape(config);
  put_parameters(config);
  put(config, "num_key_value_heads", shape.num_key_value_heads);
  put(config, "num_experts", shape.num_experts);
  put(config, "moe_intermediate_size", shape.moe_intermediate_size);
  put(config, "experts_per_token", shape.experts_per_token);
  put(config, "expert_groups", shape.expert_groups);
  put(config, "groups_per_token", shape.groups_per_token);
  put(config, "score_function", shape.score_function);
  config["has_experts"] = shape.num_experts.has_value();
  config["latent_attention"] = shape.latent_attention;
  config["shared_experts"] = shape.shared_experts;
  config["linear_bias"] = shape.linear_bias;
  return config;
}

}  // namespace hexad::config
