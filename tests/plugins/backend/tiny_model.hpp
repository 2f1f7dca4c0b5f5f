// Small models on disk with random weights, sequences, and the loss that the tests differentiate.
#pragma once
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <nlohmann/json.hpp>

#include "modeling/family/weight_table.hpp"
#include "modeling/weight/safetensors_reader.hpp"
#include "modeling/weight/safetensors_writer.hpp"

namespace backend_test {

using Weights = std::map<std::string, at::Tensor>;

// Sizes that 2, 3 and 4 ranks divide unevenly; of the 4 rows of some qwen3 weights the last of 3 ranks gets none.
inline nlohmann::json tiny_config(const std::string& family) {
  nlohmann::json config = {{"model_type", family},          {"vocab_size", 37},         {"hidden_size", 20},
                           {"num_hidden_layers", 3},        {"num_attention_heads", 3}, {"num_key_value_heads", 1},
                           {"intermediate_size", 27},       {"rms_norm_eps", 1e-6},     {"hidden_act", "silu"},
                           {"max_position_embeddings", 64}, {"rope_theta", 10000.0},    {"torch_dtype", "float32"}};
  const std::map<std::string, std::string> classes = {
      {"llama", "LlamaForCausalLM"}, {"mistral", "MistralForCausalLM"},    {"qwen2", "Qwen2ForCausalLM"},
      {"qwen3", "Qwen3ForCausalLM"}, {"qwen3_moe", "Qwen3MoeForCausalLM"}, {"deepseek_v3", "DeepseekV3ForCausalLM"}};
  config["architectures"] = {classes.at(family)};
  config["head_dim"] = family == "qwen3" ? 4 : 8;
  config["tie_word_embeddings"] = family == "qwen3";
  if (family == "mistral") config["sliding_window"] = 4;
  // Five experts of nine columns, so that no rank count divides them; the first layer is dense.
  if (family == "qwen3_moe")
    config.update({{"num_experts", 5},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 9},
                   {"norm_topk_prob", true},
                   {"mlp_only_layers", {0}}});
  if (family == "deepseek_v3")
    config.update({{"n_routed_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 9},
                   {"n_group", 2},
                   {"topk_group", 1},
                   {"n_shared_experts", 1},
                   {"first_k_dense_replace", 1},
                   {"q_lora_rank", 7},
                   {"kv_lora_rank", 5},
                   {"qk_nope_head_dim", 6},
                   {"qk_rope_head_dim", 4},
                   {"v_head_dim", 5}});
  return config;
}

inline void write_json(const std::filesystem::path& file, const nlohmann::json& document) {
  std::ofstream(file) << document.dump(1);
}

inline void write_weights(const std::filesystem::path& dir, const Weights& weights) {
  std::vector<hexad::modeling::TensorSpec> specs;
  for (const auto& [name, tensor] : weights) specs.push_back({name, tensor.sizes().vec(), tensor.scalar_type()});
  hexad::modeling::SafetensorsWriter writer(dir, specs);
  for (const auto& [name, tensor] : weights) writer.write(name, tensor);
  writer.finish();
}

inline Weights write_model(const std::filesystem::path& dir, const nlohmann::json& model) {
  std::filesystem::create_directories(dir);
  write_json(dir / "config.json", model);
  const auto config = hexad::modeling::load_model_config(dir);
  at::Generator generator = at::detail::createCPUGenerator(7);
  Weights weights;
  const auto draw = [&](const hexad::modeling::WeightInfo& info) {
    const bool norm = info.shape.size() == 1;
    weights[info.hf_name] = at::empty(info.shape, at::kFloat).normal_(norm ? 1.0 : 0.0, norm ? 0.2 : 0.3, generator);
  };
  // A bias behind its weight, wherever the table has it: the values, and so how much of a key bias's gradient cancels,
  // do not depend on the table.
  const auto table = hexad::modeling::weight_table(config);
  for (const auto& info : table) {
    if (info.hf_name.ends_with(".bias")) continue;
    draw(info);
    const std::string bias = info.hf_name.substr(0, info.hf_name.rfind('.')) + ".bias";
    for (const auto& other : table)
      if (other.hf_name == bias) draw(other);
  }
  write_weights(dir, weights);
  return weights;
}

inline Weights write_tiny_model(const std::filesystem::path& dir, const std::string& family) {
  return write_model(dir, tiny_config(family));
}

// Every tensor of the safetensors in `dir`, copied.
inline Weights read_weights(const std::filesystem::path& dir) {
  const hexad::modeling::SafetensorsReader reader(dir);
  Weights weights;
  for (const auto& [name, stored] : reader.entries()) weights[name] = reader.tensor(name).clone();
  return weights;
}

// Sequence i of the data: ids, and per-token weights of the loss (0 at its first token).
struct Sequence {
  std::vector<int64_t> ids;
  std::vector<float> weight;
};

using Pack = std::vector<Sequence>;  // of one micro-batch

inline std::vector<Sequence> make_sequences(int count, int seed) {
  std::vector<Sequence> sequences;
  uint64_t state = static_cast<uint64_t>(seed) * 7919 + 1;
  const auto draw = [&](uint64_t bound) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int64_t>((state >> 33) % bound);
  };
  for (int i = 0; i < count; ++i) {
    Sequence sequence;
    const int64_t length = 1 + draw(13);
    for (int64_t t = 0; t < length; ++t) {
      sequence.ids.push_back(draw(37));
      sequence.weight.push_back(t == 0 ? 0.0f : static_cast<float>(draw(2000)) / 1000.0f - 1.0f);
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

inline int64_t total_tokens(const std::vector<Sequence>& sequences) {
  int64_t total = 0;
  for (const Sequence& sequence : sequences) total += static_cast<int64_t>(sequence.ids.size());
  return total;
}

// sum_t (-w logp + 0.05 w logp^2 - 0.02 |w| entropy) / normalizer: uses both outputs, curved in one.
struct Loss {
  double value;
  at::Tensor grad_logprobs, grad_entropy;
};

inline Loss loss_of(const at::Tensor& logprobs, const at::Tensor& entropy, const at::Tensor& weight,
                    double normalizer) {
  const at::Tensor terms = (-weight * logprobs + 0.05 * weight * logprobs * logprobs - 0.02 * weight.abs() * entropy);
  return {terms.sum().item<double>() / normalizer, (-weight + 0.1 * weight * logprobs) / normalizer,
          -0.02 * weight.abs() / normalizer};
}

inline bool same(const Weights& a, const Weights& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && x.second.equal(y.second); });
}

inline double relative_error(const at::Tensor& got, const at::Tensor& want) {
  const double scale = want.to(at::kDouble).norm().item<double>();
  return (got.to(at::kDouble) - want.to(at::kDouble)).norm().item<double>() / std::max(scale, 1e-12);
}

// || weights || and || a - b ||, of all tensors together.
inline double norm_of(const Weights& weights) {
  double squares = 0;
  for (const auto& [name, weight] : weights) squares += std::pow(weight.to(at::kDouble).norm().item<double>(), 2);
  return std::sqrt(squares);
}
inline double distance(const Weights& a, const Weights& b) {
  Weights difference;
  for (const auto& [name, tensor] : a) difference[name] = tensor.to(at::kDouble) - b.at(name).to(at::kDouble);
  return norm_of(difference);
}

// The larger error; not a number is the largest of all.
inline double worse(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

// The largest relative_error of a tensor; infinite when the names differ.
inline double relative_error(const Weights& got, const Weights& want) {
  double worst = got.size() == want.size() ? 0 : INFINITY;
  for (const auto& [name, tensor] : got)
    worst = worse(worst, want.count(name) ? relative_error(tensor, want.at(name)) : INFINITY);
  return worst;
}

}  // namespace backend_test
