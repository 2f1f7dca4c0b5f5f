#include "app/convert/huggingface_config.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/convert/gguf_architecture.hpp"
#include "app/convert/gguf_rope.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/model/family/wrapped.hpp"
#include "lib/tensorfile/foreign_folder.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

// A config.json, its keys with the defaults of transformers' classes where files leave them out.
class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& origin) : config_(config), origin_(origin) {}

  template <typename... T>
  [[noreturn]] void refuse(fmt::format_string<T...> text, T&&... values) const {
    fail(ErrorKind::data, "{}: {}", origin_, fmt::format(text, std::forward<T>(values)...));
  }

  Json value(const char* key) const { return config_.value(key, Json()); }

  int64_t size(const char* key, std::optional<int64_t> otherwise = {}) const {
    const Json given = value(key);
    if (given.is_null() && otherwise) return *otherwise;
    if (given.is_null()) refuse("\"{}\" is missing", key);
    if (!given.is_number_integer() || given <= 0 || given > INT32_MAX)
      refuse("\"{}\" is {}, wanted a positive number up to {}", key, json_text(given), INT32_MAX);
    return given;
  }

  double real(const char* key, double otherwise) const {
    const Json parameters = value("rope_parameters");
    Json given = value(key);
    if (given.is_null() && parameters.is_object()) given = parameters.value(key, Json());
    if (given.is_null()) return otherwise;
    if (!given.is_number() || !(given.get<double>() > 0) || !std::isfinite(static_cast<float>(given.get<double>())))
      refuse("\"{}\" is {}, wanted a positive number", key, json_text(given));
    return given;
  }

  bool flag(const char* key, bool otherwise) const {
    const Json given = value(key);
    if (given.is_null()) return otherwise;
    if (!given.is_boolean()) refuse("\"{}\" is {}, wanted true or false", key, json_text(given));
    return given;
  }

 private:
  const Json& config_;
  const std::string& origin_;
};

const GgufArchitecture& architecture_of_config(const Json& config, const ConfigReader& reader) {
  if (!config.is_object()) reader.refuse("not a JSON object");
  const Json type = reader.value("model_type");
  const GgufArchitecture* found = type.is_string() ? architecture_of(type.get<std::string>()) : nullptr;
  if (found) return *found;
  const std::string wrapped = model::wrapped_text(nlohmann::json(config));
  if (!wrapped.empty()) reader.refuse("{}", wrapped);
  reader.refuse("model_type {} cannot be written as GGUF; known are {}", json_text(type), known_model_types());
}

// llama.cpp runs these architectures with every key visible to every later query.
void require_whole_attention(const ConfigReader& reader, const std::string& type) {
  const Json window = reader.value("sliding_window"), layers = reader.value("layer_types");
  const bool always = type == "mistral" || type == "mixtral";
  const bool is_set =
      window.is_number_integer() && window > 0 && window < reader.size("max_position_embeddings") && type != "llama";
  const bool listed = layers.is_array() && std::ranges::find(layers, Json("sliding_attention")) != layers.end();
  if (!listed && !(is_set && (always || reader.flag("use_sliding_window", false)))) return;
  reader.refuse(
      "\"sliding_window\" is {}, and llama.cpp has none for {}: it would answer otherwise behind that many tokens. For "
      "shorter texts set max_position_embeddings to that number in a copy of the folder",
      json_text(window), type);
}

void require_known(const ConfigReader& reader, const GgufArchitecture& architecture, const Json& config) {
  const std::string type = architecture.model_type;
  if (const std::string how = tensorfile::quantization_of(nlohmann::json(config)); !how.empty())
    reader.refuse("its weights are quantised ({}): take the folder that they were made from", how);
  const Json act = reader.value("hidden_act");
  if (!act.is_null() && act != "silu" && act != "swish")
    reader.refuse("\"hidden_act\" is {}, and llama.cpp has silu for {}", json_text(act), type);
  if (architecture.always_qkv_bias && !reader.flag("qkv_bias", true))
    reader.refuse("\"qkv_bias\" is false, and llama.cpp wants biases for {}", type);
  require_whole_attention(reader, type);
}

void add_experts(const ConfigReader& reader, const GgufArchitecture& architecture, Json& known) {
  const std::string type = architecture.model_type;
  const bool mixtral = type == "mixtral";
  // transformers 5 writes the one as the other.
  const char* other = mixtral ? "num_experts" : "num_local_experts";
  const int64_t experts = reader.size(reader.value(architecture.experts).is_null() ? other : architecture.experts);
  known[architecture.experts] = experts;
  known["num_experts_per_tok"] = reader.size("num_experts_per_tok");
  if (known["num_experts_per_tok"] > experts)
    reader.refuse("\"num_experts_per_tok\" is above the number of experts, {}", experts);
  if (mixtral) return;
  known["moe_intermediate_size"] = reader.size("moe_intermediate_size");
  if (architecture.shared_expert)
    known["shared_expert_intermediate_size"] = reader.size("shared_expert_intermediate_size");
  const bool norm_topk = reader.flag("norm_topk_prob", false);
  if (norm_topk != architecture.norm_topk)
    reader.refuse("\"norm_topk_prob\" is {}, and llama.cpp has {} for {}", norm_topk, architecture.norm_topk, type);
  const Json dense = reader.value("mlp_only_layers");
  if (reader.size("decoder_sparse_step", 1) != 1 || (dense.is_array() && !dense.empty()))
    reader.refuse(
        "some layers have no experts (\"decoder_sparse_step\", \"mlp_only_layers\"), and llama.cpp wants them "
        "in every layer of {}",
        type);
  known.update({{"norm_topk_prob", norm_topk}, {"decoder_sparse_step", 1}, {"mlp_only_layers", Json::array()}});
}

}  // namespace

Json known_config(const Json& config, const std::string& origin) {
  const ConfigReader reader(config, origin);
  const GgufArchitecture& architecture = architecture_of_config(config, reader);
  require_known(reader, architecture, config);
  const std::string type = architecture.model_type;
  const bool mixtral = type == "mixtral";
  const int64_t hidden = reader.size("hidden_size"), heads = reader.size("num_attention_heads");
  const int64_t kv_heads =
      type == "llama" ? reader.size("num_key_value_heads", heads) : reader.size("num_key_value_heads");
  const int64_t head_dim = reader.size("head_dim", type == "qwen3" ? 128 : hidden / heads);
  if (heads % kv_heads != 0 || head_dim % 2 != 0) {
    reader.refuse("{} attention heads, {} key/value heads of size {}: heads must be a multiple, the size even", heads,
                  kv_heads, head_dim);
  }
  Json partial = reader.value("partial_rotary_factor");
  if (const Json rope = reader.value("rope_parameters"); partial.is_null() && rope.is_object())
    partial = rope.value("partial_rotary_factor", Json());
  if (partial.is_number() && partial != 1)
    reader.refuse("\"partial_rotary_factor\" is {}, wanted 1", json_text(partial));
  Json known = {{"architectures", {architecture.class_name}},
                {"model_type", type},
                {"hidden_act", "silu"},
                {"hidden_size", hidden},
                {"intermediate_size", reader.size("intermediate_size")},
                {"num_hidden_layers", reader.size("num_hidden_layers")},
                {"num_attention_heads", heads},
                {"num_key_value_heads", kv_heads},
                {"head_dim", head_dim},
                {"max_position_embeddings", reader.size("max_position_embeddings")},
                {"rms_norm_eps", reader.real("rms_norm_eps", mixtral ? 1e-5 : 1e-6)},
                {"rope_theta", reader.real("rope_theta", mixtral ? 1e6 : 1e4)},
                {"rope_scaling", known_rope_scaling(config, architecture, origin)},
                {"tie_word_embeddings", reader.flag("tie_word_embeddings", false)},
                {"vocab_size", reader.size("vocab_size")}};
  if (architecture.experts) add_experts(reader, architecture, known);
  if (type == "llama" || architecture.qk_norm) known["attention_bias"] = reader.flag("attention_bias", false);
  if (type == "llama") known["mlp_bias"] = reader.flag("mlp_bias", false);
  return known;
}

}  // namespace hexad::convert
