#include "lib/model/parameter_count.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::model {
namespace {

using Config = nlohmann::ordered_json;

enum class Bias { never, always, attention_bias, unless_qkv_bias };

struct ExpertDefaults {
  const char* width_key;
  int64_t experts, width, shared_width;  // where the file does not say; 0: it has to
};

// Defaults: transformers' configuration classes, as in family/families.cpp and moe_config.cpp.
struct FamilyRow {
  std::string_view model_type;
  Bias qkv_bias, output_bias;
  bool mlp_bias, qk_norm;
  int64_t key_value_heads, head_dim;  // where the file does not say; 0: as the others' sizes have it
  std::optional<ExpertDefaults> experts = std::nullopt;
};

constexpr Bias kAsked = Bias::attention_bias;
const FamilyRow kRows[] = {
    {"llama", kAsked, kAsked, true, false, 0, 0},
    {"mistral", Bias::never, Bias::never, false, false, 8, 0},
    {"qwen2", Bias::always, Bias::never, false, false, 32, 0},
    {"qwen3", kAsked, kAsked, false, true, 32, 128},
    {"qwen2_moe", Bias::unless_qkv_bias, Bias::never, false, false, 16, 0, {{"moe_intermediate_size", 60, 1408, 5632}}},
    {"qwen3_moe", kAsked, kAsked, false, true, 4, 0, {{"moe_intermediate_size", 128, 768, 0}}},
    {"mixtral", Bias::never, Bias::never, false, false, 8, 0, {{"intermediate_size", 8, 0, 0}}},
    {"deepseek_v3", kAsked, kAsked, false, false, 0, 0, {{"moe_intermediate_size", 256, 2048, 0}}},
};

const FamilyRow* row_of(const Config& config) {
  const auto type = config.find("model_type");
  if (type == config.end() || !type->is_string()) return nullptr;
  const auto row = std::ranges::find(kRows, type->get<std::string>(), &FamilyRow::model_type);
  return row == std::end(kRows) ? nullptr : &*row;
}

// Reads sizes; null counts as absent. What is missing or no size makes the count unknown.
class SizeReader {
 public:
  explicit SizeReader(const Config& config) : config_(config) {}

  bool known() const { return known_; }
  void refuse() { known_ = false; }
  bool mentions(const char* key) const { return config_.contains(key); }
  bool has(const char* key) const { return mentions(key) && !config_[key].is_null(); }
  const Config& raw(const char* key) const { return config_[key]; }

  // 1 to `most`, which keeps products of a few sizes in range.
  int64_t size(const char* key, int64_t otherwise = 0, int64_t most = 1'000'000) {
    return number(key, otherwise, 1, most);
  }
  int64_t number(const char* key, int64_t otherwise, int64_t least = 0, int64_t most = 1'000'000) {
    int64_t value = otherwise;
    if (has(key)) {
      if (!raw(key).is_number_integer()) return refused();
      value = raw(key).get<int64_t>();
    }
    return value >= least && value <= most ? value : refused();
  }
  bool flag(const char* key, bool otherwise) {
    if (!has(key)) return otherwise;
    if (!raw(key).is_boolean()) return refused() != 1;
    return raw(key).get<bool>();
  }

 private:
  int64_t refused() {
    refuse();
    return 1;
  }

  const Config& config_;
  bool known_ = true;
};

bool present(Bias bias, SizeReader& read) {
  switch (bias) {
    case Bias::never: return false;
    case Bias::always: return true;
    case Bias::attention_bias: return read.flag("attention_bias", false);
    case Bias::unless_qkv_bias: return read.flag("qkv_bias", true);
  }
  return false;
}

void count_attention(const FamilyRow& row, SizeReader& read, int64_t hidden, ParameterCount& out) {
  const int64_t heads = read.size("num_attention_heads", 0, 10'000);
  const bool absent = !read.mentions("num_key_value_heads") && row.key_value_heads > 0;
  const int64_t key_heads = read.size("num_key_value_heads", absent ? row.key_value_heads : heads, 10'000);
  const int64_t head_dim = read.size("head_dim", row.head_dim > 0 ? row.head_dim : hidden / heads);
  const int64_t query = heads * head_dim, keys = 2 * key_heads * head_dim;
  const int64_t bias = present(row.qkv_bias, read) ? 1 : 0;
  out.key_value = keys * (hidden + bias);
  out.output_bias = present(row.output_bias, read) ? hidden : 0;
  out.attention = query * (hidden + bias) + out.key_value + query * hidden + out.output_bias;
  out.norms = 2 * hidden + (row.qk_norm ? 2 * head_dim : 0);
  out.query_size = query, out.key_size = keys / 2, out.query_norm = row.qk_norm;
}

// DeepSeek-V2, arXiv 2405.04434: queries, and keys and values together, come from latents. q_lora_rank null: queries do
// not, and an absent one has its default.
void count_latent_attention(const FamilyRow& row, SizeReader& read, int64_t hidden, ParameterCount& out) {
  const int64_t heads = read.size("num_attention_heads", 0, 10'000);
  const bool direct = read.mentions("q_lora_rank") && !read.has("q_lora_rank");
  const int64_t query_rank = direct ? 0 : read.size("q_lora_rank", 1536);
  const int64_t rank = read.size("kv_lora_rank", 512), rotated = read.size("qk_rope_head_dim", 64),
                plain = read.size("qk_nope_head_dim", 128), value = read.size("v_head_dim", 128);
  const int64_t bias = present(row.qkv_bias, read) ? 1 : 0, query = heads * (plain + rotated);
  out.latent = (query_rank + rank + rotated) * (hidden + bias);
  out.output_bias = present(row.output_bias, read) ? hidden : 0;
  out.attention = out.latent + query * (direct ? hidden : query_rank) + heads * (plain + value) * rank +
                  heads * value * hidden + out.output_bias;
  out.norms = 2 * hidden + query_rank + rank;
}

// first_k_dense_replace (DeepSeek), decoder_sparse_step and mlp_only_layers (Qwen); Mixtral has experts everywhere.
std::vector<bool> layers_with_experts(const FamilyRow& row, SizeReader& read, int64_t layers) {
  std::vector<bool> with(static_cast<size_t>(layers), true);
  if (row.model_type == "deepseek_v3") {
    const int64_t dense = read.number("first_k_dense_replace", 3);
    std::fill_n(with.begin(), std::min(dense, layers), false);
    if (read.size("moe_layer_freq", 1) != 1) read.refuse();
    return with;
  }
  if (row.model_type == "mixtral") return with;
  const int64_t step = read.size("decoder_sparse_step", 1);
  for (size_t layer = 0; layer < with.size(); ++layer) with[layer] = (static_cast<int64_t>(layer) + 1) % step == 0;
  if (!read.has("mlp_only_layers")) return with;
  if (!read.raw("mlp_only_layers").is_array()) read.refuse();
  for (const Config& dense : read.raw("mlp_only_layers")) {
    if (!dense.is_number_integer()) {
      read.refuse();
    } else if (dense >= 0 && dense < layers) {
      with[dense.get<size_t>()] = false;
    }
  }
  return with;
}

void count_experts(const FamilyRow& row, SizeReader& read, int64_t hidden, ParameterCount& out) {
  const std::vector<bool> with = layers_with_experts(row, read, out.layers);
  out.expert_layers = std::ranges::count(with, true);
  out.first_expert_layer = std::ranges::find(with, true) - with.begin();
  const ExpertDefaults& defaults = *row.experts;
  // transformers 5 saves Qwen's num_experts as num_local_experts.
  const char* own = row.model_type == "mixtral"       ? "num_local_experts"
                    : row.model_type == "deepseek_v3" ? "n_routed_experts"
                                                      : "num_experts";
  out.experts = read.size(read.has(own) ? own : "num_local_experts", defaults.experts);
  const int64_t width = read.size(defaults.width_key, defaults.width);
  out.router = out.experts * hidden;
  out.expert = 3 * hidden * width;
  if (row.model_type == "qwen2_moe") {
    out.shared = 3 * hidden * read.size("shared_expert_intermediate_size", defaults.shared_width);
    out.shared_gate = hidden;
  }
  if (row.model_type == "deepseek_v3") {
    const int64_t shared = read.number("n_shared_experts", read.mentions("n_shared_experts") ? 0 : 1, 0, 1000);
    out.shared = shared * out.expert;
    out.expert_bias = out.experts;
  }
}

// Sums of products of sizes that are each in range may still not be.
bool in_range(const ParameterCount& count) {
  const double layer = static_cast<double>(count.attention) + static_cast<double>(count.dense_mlp) +
                       static_cast<double>(count.experts) * static_cast<double>(count.expert) +
                       static_cast<double>(count.shared);
  return layer * static_cast<double>(count.layers) < 1e18;
}

}  // namespace

std::optional<ParameterCount> parameter_count(const Config& config) {
  const FamilyRow* row = config.is_object() ? row_of(config) : nullptr;
  if (!row) return std::nullopt;
  SizeReader read(config);
  ParameterCount out;
  const int64_t hidden = read.size("hidden_size");
  out.layers = out.first_expert_layer = read.size("num_hidden_layers");
  out.embedding = read.size("vocab_size", 0, 1'000'000'000) * hidden;
  out.head = read.flag("tie_word_embeddings", false) ? 0 : out.embedding;
  out.final_norm = hidden;
  if (row->model_type == "deepseek_v3")
    count_latent_attention(*row, read, hidden, out);
  else
    count_attention(*row, read, hidden, out);
  const int64_t width = read.size("intermediate_size");
  const bool bias = row->mlp_bias && read.flag("mlp_bias", false);
  out.mlp_bias = bias ? hidden : 0;
  out.dense_mlp = 3 * hidden * width + (bias ? 2 * width : 0) + out.mlp_bias;
  if (row->experts) count_experts(*row, read, hidden, out);
  return read.known() && in_range(out) ? std::optional(out) : std::nullopt;
}

}  // namespace hexad::model
