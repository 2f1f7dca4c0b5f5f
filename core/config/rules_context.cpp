#include "core/config/rules_context.hpp"

#include <algorithm>

#include "core/base/joined.hpp"

namespace hexad::config {
namespace {

const char* const kExchangeType = "cp_comm_type";
const char* const kExchangeSizes = "hierarchical_context_parallel_sizes";
const std::vector<std::string> kExchangeTypes = {"p2p", "all_gather", "a2a", "a2a+p2p"};

}  // namespace

std::vector<std::string> ContextExchangeRules::types() const {
  const Node* value = c.root().find(path(kExchangeType));
  if (!value || value->is_string()) return {value ? value->as_string() : "p2p"};
  std::vector<std::string> result;
  if (value->is_list()) {
    for (const Node& item : value->items()) result.push_back(item.is_string() ? item.as_string() : "");
  }
  return result;
}

// Ulysses shares heads out over the ranks of one exchange; where there are fewer key/value heads, each goes to several.
void ContextExchangeRules::check_heads(int64_t ranks) const {
  const int64_t shares = ranks * tp;
  const auto refuse = [&](const char* what, int64_t heads, const char* relation) {
    c.error(path(kExchangeType),
            fmt::format("a2a shares heads: {} {} is no {} of {} (context {} x tensor parallel {}); nearest: p2p", what,
                        heads, relation, shares, ranks, tp));
  };
  const std::optional<int64_t> heads = model.num_attention_heads, key_values = model.num_key_value_heads;
  if (heads && *heads >= 1 && *heads % shares != 0) return refuse("num_attention_heads", *heads, "multiple");
  if (key_values && *key_values >= 1 && *key_values % shares != 0 && shares % *key_values != 0)
    refuse("num_key_value_heads", *key_values, "multiple or divisor");
}

std::optional<std::vector<int64_t>> ContextExchangeRules::sizes() const {
  const Node* value = c.root().find(path(kExchangeSizes));
  if (!value || !value->is_list()) return std::nullopt;
  std::vector<int64_t> result;
  for (const Node& item : value->items()) {
    if (!item.is_int() || item.as_int() < 1 || item.as_int() > cp) return std::vector<int64_t>();
    result.push_back(item.as_int());
  }
  return result;
}

void ContextExchangeRules::check_hierarchy(bool wanted) const {
  const std::optional<std::vector<int64_t>> given = sizes();
  if (!wanted) {
    if (given) c.notice(path(kExchangeSizes), "has no effect: cp_comm_type is not a2a+p2p");
    return;
  }
  const std::string example = fmt::format("; nearest: [{}, {}]", cp % 2 ? 1 : 2, cp % 2 ? cp : cp / 2);
  if (!given) {
    return c.error(path(kExchangeSizes), fmt::format("a2a+p2p needs the sizes of its two exchanges, whose product is "
                                                     "context_parallel_size {}{}",
                                                     cp, example));
  }
  if (given->size() != 2 || (*given)[0] * (*given)[1] != cp) {
    return c.error(path(kExchangeSizes),
                   fmt::format("got [{}], wanted two sizes whose product is context_parallel_size {}{}", joined(*given),
                               cp, example));
  }
  check_heads((*given)[0]);
}

void ContextExchangeRules::check() const {
  const std::vector<std::string> asked = types();
  for (const std::string& type : asked) {
    if (std::ranges::find(kExchangeTypes, type) == kExchangeTypes.end()) {
      return c.error(path(kExchangeType), fmt::format("got '{}', wanted one of {}", type, joined(kExchangeTypes)));
    }
  }
  const Node* value = c.root().find(path(kExchangeType));
  if (value && value->is_list() && model.num_layers && static_cast<int64_t>(asked.size()) != *model.num_layers) {
    c.error(path(kExchangeType),
            fmt::format("a list of {}, wanted one for each of num_hidden_layers {}; nearest: one text for all",
                        asked.size(), *model.num_layers));
  }
  if (cp == 1) return;
  if (std::ranges::find(asked, "a2a") != asked.end()) check_heads(cp);
  check_hierarchy(std::ranges::find(asked, "a2a+p2p") != asked.end());
}

}  // namespace hexad::config
