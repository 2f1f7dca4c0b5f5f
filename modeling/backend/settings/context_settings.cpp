#include "modeling/backend/settings/context_settings.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "modeling/backend/settings/model_settings.hpp"

namespace hexad::modeling {
namespace {

using enum ContextExchange;

template <typename... Args>
[[noreturn]] void refuse_context(const std::string& key, fmt::format_string<Args...> text, Args&&... args) {
  sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.%s: %s", key.c_str(),
            fmt::format(text, std::forward<Args>(args)...).c_str());
}

std::vector<ContextExchange> read_exchange(const sdk::Config& config, const std::string& key, int64_t layers) {
  const nlohmann::json written = json_at(config, key.c_str());
  if (written.is_null()) return {p2p};
  const nlohmann::json list = written.is_array() ? written : nlohmann::json::array({written});
  if (written.is_array() && static_cast<int64_t>(list.size()) != layers)
    refuse_context(key, "a list of {}, wanted one for each of num_hidden_layers {}, or one text for all", list.size(),
                   layers);
  std::vector<ContextExchange> result;
  for (const nlohmann::json& item : list) {
    const auto exchange = parse_context_exchange(item.is_string() ? item.get<std::string>() : "");
    if (!exchange) refuse_context(key, "got {}, wanted one of p2p, all_gather, a2a, a2a+p2p", item.dump());
    result.push_back(*exchange);
  }
  return result;
}

// Heads that tensor parallelism leaves to a rank.
struct LocalHeads {
  int64_t query, key_value;
};

LocalHeads local_heads(const ModelConfig& model, int64_t tensor) {
  const int64_t key_value = model.mla ? model.num_heads : model.num_kv_heads;
  return {model.num_heads / tensor, std::max<int64_t>(1, key_value / tensor)};
}

void check_heads(const std::string& key, const char* form, const ModelConfig& model, int64_t ranks, int64_t tensor) {
  const LocalHeads heads = local_heads(model, tensor);
  if (heads_divide(heads.query, heads.key_value, ranks)) return;
  std::vector<int64_t> fitting;
  for (int64_t size = 1; size <= heads.query; ++size)
    if (heads_divide(heads.query, heads.key_value, size)) fitting.push_back(size);
  refuse_context(
      key,
      "{} shares the heads of a tensor-parallel rank, {} and {} of keys and values, among {} ranks: the first "
      "must be a multiple of them, the second a multiple or a divisor; sizes that fit: {}; or take p2p",
      form, heads.query, heads.key_value, ranks, fmt::join(fitting, ", "));
}

// The ranks of the inner exchange, of the `sizes` that stand at `key`.
int64_t inner_of(const nlohmann::json& sizes, const std::string& key, int64_t ranks) {
  const bool pair =
      sizes.is_array() && sizes.size() == 2 && sizes[0].is_number_integer() && sizes[1].is_number_integer();
  const int64_t inner = pair ? sizes[0].get<int64_t>() : 0, outer = pair ? sizes[1].get<int64_t>() : 0;
  if (inner > 0 && outer > 0 && inner <= ranks && inner * outer == ranks) return inner;
  refuse_context(key,
                 "got {}, wanted the sizes of a2a+p2p's two exchanges, whose product is context_parallel_size {}; "
                 "nearest: [{}, {}]",
                 sizes.dump(), ranks, ranks % 2 ? 1 : 2, ranks % 2 ? ranks : ranks / 2);
}

}  // namespace

ContextSettings read_context_settings(const sdk::Config& config, const char* section, const ModelConfig& model,
                                      int64_t ranks, int64_t tensor) {
  const std::string at = std::string(section) + ".", type = at + "cp_comm_type";
  const std::string inner = at + "hierarchical_context_parallel_sizes";
  ContextSettings settings{read_exchange(config, type, model.num_layers), 1};
  const nlohmann::json sizes = json_at(config, inner.c_str());
  if (ranks == 1) return {};
  const auto wants = [&](ContextExchange exchange) {
    return std::find(settings.exchange.begin(), settings.exchange.end(), exchange) != settings.exchange.end();
  };
  if (wants(a2a)) check_heads(type, "a2a", model, ranks, tensor);
  if (wants(a2a_p2p)) {
    settings.inner = inner_of(sizes, inner, ranks);
    check_heads(type, "a2a+p2p", model, settings.inner, tensor);
    if (settings.inner == 1) std::replace(settings.exchange.begin(), settings.exchange.end(), a2a_p2p, p2p);
  }
  return settings;
}

}  // namespace hexad::modeling
