#include "plugins/vllm_bridge/fp8/layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <hexad/services.hpp>
#include <map>
#include <span>
#include <string_view>

#include "lib/model/family/weight_table.hpp"

namespace hexad::vllm::fp8 {
namespace {

constexpr std::string_view kWeight = ".weight", kExperts = ".experts.";

// Modules that vLLM holds as one matrix: quantised all, or none of them.
constexpr std::string_view kQkv[] = {"q_proj", "k_proj", "v_proj"}, kGateUp[] = {"gate_proj", "up_proj"},
                           kLatents[] = {"q_a_proj", "kv_a_proj_with_mqa"};

// The experts of a layer are one module of vLLM's, whatever their number: its name, else the weight's own.
std::string module_of(const std::string& weight) {
  const size_t experts = weight.find(kExperts);
  if (experts != std::string::npos) return weight.substr(0, experts + kExperts.size() - 1);
  return weight.substr(0, weight.size() - kWeight.size());
}

bool is_linear(const model::WeightInfo& info) {
  return info.shape.size() == 2 && info.unit.starts_with("layers.") && !model::is_router(info) && info.shape[0] > 1;
}

bool is_left_out(const model::WeightInfo& info, const LeftOut& left_out, int64_t layers) {
  const int64_t layer = std::stoll(info.unit.substr(std::string_view("layers.").size()));
  if (layer < left_out.first_layers || layer >= layers - left_out.last_layers) return true;
  const std::string name = info.hf_name.substr(0, info.hf_name.size() - kWeight.size());
  return std::ranges::any_of(left_out.keywords, [&](const auto& word) { return name.find(word) != std::string::npos; });
}

// The modules `parts` of a parent.
struct Merged {
  std::string parent;
  std::span<const std::string_view> parts;
};
void check_merged(const std::map<std::string, int64_t>& rows, const std::set<std::string>& ignored,
                  const Merged& merged, bool blocks) {
  std::vector<std::string_view> held, out;
  for (const std::string_view part : merged.parts) {
    const std::string name = merged.parent + std::string(part);
    if (!rows.contains(name)) return;
    (ignored.contains(name) ? out : held).push_back(part);
  }
  if (!out.empty() && !held.empty()) {
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "vllm_cfg.quantization_ignored_layer_kws: leaves out %s of %s, and not %s, which vLLM holds with it as one "
        "matrix; wanted all or none of them",
        fmt::format("{}", fmt::join(out, ", ")).c_str(), merged.parent.c_str(),
        fmt::format("{}", fmt::join(held, ", ")).c_str());
  }
  for (size_t i = 0; blocks && out.empty() && i + 1 < merged.parts.size(); ++i) {
    const std::string name = merged.parent + std::string(merged.parts[i]);
    if (rows.at(name) % 128 == 0) continue;
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "vllm_cfg.precision: got fp8, and %s has %lld rows, wanted a multiple of 128: vLLM holds it with others as "
        "one matrix of blocks of 128. Leave it out by vllm_cfg.quantization_ignored_layer_kws",
        name.c_str(), static_cast<long long>(rows.at(name)));
  }
}

std::string parent_of(const std::string& module) { return module.substr(0, module.rfind('.') + 1); }

}  // namespace

Layers quantised_layers(const model::ModelConfig& config, const LeftOut& left_out, bool whole_head) {
  if (left_out.first_layers + left_out.last_layers > config.num_layers) {
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "vllm_cfg.num_first_layers_in_bf16 and num_last_layers_in_bf16: got %lld and %lld, and the model has %lld "
        "layers",
        static_cast<long long>(left_out.first_layers), static_cast<long long>(left_out.last_layers),
        static_cast<long long>(config.num_layers));
  }
  const std::vector<model::WeightInfo> table = model::weight_table(config);
  std::set<std::string> ignored;
  std::map<std::string, int64_t> rows;  // of linears
  Layers result;
  const auto ignore = [&](const std::string& module) {
    if (ignored.insert(module).second) result.ignored.push_back(module);
  };
  for (const model::WeightInfo& info : table) {
    if (info.shape.size() != 2 || !info.unit.starts_with("layers.")) continue;
    if (is_linear(info)) rows[module_of(info.hf_name)] = info.shape[0];
    // Whether a router is quantised depends on vLLM's version: here none is.
    if (!is_linear(info) || is_left_out(info, left_out, config.num_layers)) ignore(module_of(info.hf_name));
  }
  if (whole_head && !config.tie_word_embeddings && !config.reward_head) ignore("lm_head");
  for (const auto& [module, size] : rows) {
    const std::string parent = parent_of(module);
    if (module == parent + "q_proj") check_merged(rows, ignored, {parent, kQkv}, !whole_head);
    if (module == parent + "gate_proj") check_merged(rows, ignored, {parent, kGateUp}, !whole_head);
    if (module == parent + "q_a_proj") check_merged(rows, ignored, {parent, kLatents}, !whole_head);
  }
  for (const model::WeightInfo& info : table)
    if (is_linear(info) && !ignored.contains(module_of(info.hf_name))) result.weights.insert(info.hf_name);
  return result;
}

}  // namespace hexad::vllm::fp8
