#include "lib/model/family/model_config.hpp"

#include <algorithm>

#include "lib/model/error.hpp"
#include "lib/model/family/families.hpp"
#include "lib/model/family/wrapped.hpp"

namespace hexad::model {
namespace {

bool present(Presence presence, const ConfigFields& fields, const char* key) {
  if (presence == Presence::opt_out) return fields.boolean("qkv_bias").value_or(true);
  return presence == Presence::always || (presence == Presence::configured && fields.boolean(key).value_or(false));
}

std::vector<int64_t> sliding_windows(const Family& family, const ConfigFields& fields, int64_t num_layers) {
  std::vector<int64_t> windows(num_layers, 0);
  const bool by_key = family.window == Window::every_layer || family.window == Window::if_set;
  if (family.window == Window::none) return windows;
  if (!by_key && !fields.boolean("use_sliding_window").value_or(false)) return windows;
  const bool is_null = !fields.has("sliding_window") && fields.mentions("sliding_window");
  const bool is_off = family.window == Window::if_set && !fields.has("sliding_window");
  const int64_t window = is_null || is_off ? 0 : fields.size("sliding_window", 4096, INT64_MAX);
  if (by_key || family.window == Window::opt_in) return std::vector<int64_t>(num_layers, window);
  if (fields.has("layer_types")) {
    const nlohmann::json& types = fields.raw("layer_types");
    if (!types.is_array() || int64_t(types.size()) != num_layers)
      fields.wrong("layer_types", "one entry for each layer");
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      if (types[layer] == "sliding_attention") {
        windows[layer] = window;
      } else if (types[layer] != "full_attention") {
        fields.wrong("layer_types", "entries full_attention or sliding_attention");
      }
    }
    return windows;
  }
  const int64_t first = fields.integer("max_window_layers").value_or(28);
  const bool alternate = family.window == Window::alternate;
  for (int64_t layer = 0; layer < num_layers; ++layer)
    if (alternate ? layer % 2 == 0 && layer < first : layer >= first) windows[layer] = window;
  return windows;
}

void parse_heads(const Family& family, const ConfigFields& fields, ModelConfig& config) {
  const std::string& origin = fields.origin();
  if (family.mla) {
    config.mla = parse_mla(fields, config.rope);
    config.num_kv_heads = config.num_heads;
    config.head_dim = config.mla->rope_head_dim;
  } else {
    const bool absent = !fields.mentions("num_key_value_heads");
    config.num_kv_heads =
        fields.count("num_key_value_heads", family.num_kv_heads && absent ? family.num_kv_heads : config.num_heads);
    config.head_dim =
        fields.count("head_dim", family.head_dim ? family.head_dim : config.hidden_size / config.num_heads);
  }
  if (config.num_heads % config.num_kv_heads != 0) {
    fail("{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", origin, config.num_heads,
         config.num_kv_heads);
  }
  if (config.head_dim % 2 != 0) fail("{}: head_dim is {}, wanted an even number", origin, config.head_dim);
}

}  // namespace

std::vector<int64_t> token_ids(const ConfigFields& fields, const char* key) {
  if (!fields.has(key)) return {};
  const nlohmann::json& value = fields.raw(key);
  std::vector<int64_t> ids;
  for (const nlohmann::json& id : value.is_array() ? value : nlohmann::json::array({value})) {
    if (!id.is_number_integer()) fields.wrong(key, "a token id or a list of them");
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

ModelConfig parse_model_config(const nlohmann::json& json, const std::string& origin) {
  const ConfigFields fields(json, origin);
  if (const std::string wrapped = wrapped_text(json); !wrapped.empty()) fail("{}: {}", origin, wrapped);
  if (!fields.has("model_type")) fail("{}: 'model_type' is missing", origin);
  const Family& family = family_of(*fields.text("model_type"), origin);
  const std::string activation = fields.text("hidden_act").value_or("silu");
  if (activation != "silu") fail("{}: hidden_act '{}' is not supported; wanted silu", origin, activation);

  ModelConfig config;
  config.family = family.model_type;
  config.vocab_size = fields.size("vocab_size");
  config.hidden_size = fields.size("hidden_size");
  config.num_layers = fields.count("num_hidden_layers");
  config.num_heads = fields.count("num_attention_heads");
  config.intermediate_size = fields.size("intermediate_size");
  config.rms_norm_eps = fields.number("rms_norm_eps").value_or(family.rms_norm_eps);
  config.max_position_embeddings = fields.size("max_position_embeddings", family.max_position_embeddings);
  config.rope = parse_rope(fields, config.max_position_embeddings, family.rope_theta);
  parse_heads(family, fields, config);
  if (family.moe) config.moe = parse_moe(*family.moe, fields, config.num_layers);
  if (config.moe && std::count(config.moe->layers.begin(), config.moe->layers.end(), true) == 0) config.moe.reset();
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings").value_or(false);
  config.qkv_bias = present(family.qkv_bias, fields, "attention_bias");
  config.output_bias = present(family.output_bias, fields, "attention_bias");
  config.mlp_bias = present(family.mlp_bias, fields, "mlp_bias");
  config.qk_norm = family.qk_norm;
  config.sliding_window = sliding_windows(family, fields, config.num_layers);
  config.initializer_range = fields.number("initializer_range").value_or(0.02);
  config.dtype = fields.text("dtype").value_or(fields.text("torch_dtype").value_or(""));
  config.bos_token_id = fields.mentions("bos_token_id") ? fields.integer("bos_token_id") : family.bos_token_id;
  config.eos_token_ids = token_ids(fields, "eos_token_id");
  if (!fields.mentions("eos_token_id") && family.eos_token_id) config.eos_token_ids = {*family.eos_token_id};
  config.original = json;
  return config;
}

}  // namespace hexad::model
