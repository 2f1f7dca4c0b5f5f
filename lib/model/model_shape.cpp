#include "lib/model/model_shape.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "lib/model/error.hpp"

namespace hexad::model {
namespace {

using Json = nlohmann::ordered_json;

// nlohmann copies a value with a call a level: a stranger's file could end the stack.
constexpr int kDeepest = 500;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail("{}: cannot be opened: {}", file.string(), std::strerror(errno));
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
}

// Text that is not JSON, or nested too deep, is no object either.
Json parsed(const std::string& text) {
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, const Json&) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    too_deep = too_deep || (opens && depth >= kDeepest);
    return !too_deep;
  };
  Json config = Json::parse(text, watch, /*allow_exceptions=*/false);
  return too_deep ? Json() : config;
}

std::optional<int64_t> integer(const Json& config, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (config.contains(name) && config[name].is_number_integer()) return config[name].get<int64_t>();
  }
  return std::nullopt;
}

bool flag(const Json& config, const char* name) {
  return config.contains(name) && config[name].is_boolean() && config[name].get<bool>();
}

}  // namespace

ModelShape model_shape(const Json& config) {
  ModelShape shape;
  shape.num_attention_heads = integer(config, {"num_attention_heads"});
  shape.latent_attention = integer(config, {"kv_lora_rank"}).has_value();
  if (!shape.latent_attention) {
    shape.num_key_value_heads = integer(config, {"num_key_value_heads", "num_attention_heads"});
  }
  shape.num_layers = integer(config, {"num_hidden_layers"});
  shape.intermediate_size = integer(config, {"intermediate_size"});
  shape.num_experts = integer(config, {"num_experts", "num_local_experts", "n_routed_experts"});
  if (shape.num_experts == 0) shape.num_experts.reset();
  shape.linear_bias = flag(config, "mlp_bias");
  if (!shape.num_experts) return shape;
  shape.moe_intermediate_size = integer(config, {"moe_intermediate_size", "intermediate_size"});
  shape.experts_per_token = integer(config, {"num_experts_per_tok"});
  shape.expert_groups = integer(config, {"n_group"});
  shape.groups_per_token = integer(config, {"topk_group"});
  shape.score_function = "softmax";
  if (config.contains("scoring_func") && config["scoring_func"].is_string()) {
    shape.score_function = config["scoring_func"].get<std::string>();
  } else if (config.value("model_type", Json()) == "deepseek_v3") {
    shape.score_function = "sigmoid";
  }
  shape.shared_experts = integer(config, {"n_shared_experts", "shared_expert_intermediate_size"}).value_or(0) > 0;
  return shape;
}

std::optional<ModelShape> read_model_shape(const std::filesystem::path& folder, const Json& overrides) {
  const std::filesystem::path file = folder / "config.json";
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(file, unreadable)) return std::nullopt;
  Json config = parsed(text_of(file));
  if (!config.is_object()) return std::nullopt;
  if (overrides.is_object()) config.merge_patch(overrides);
  return model_shape(config);
}

}  // namespace hexad::model
