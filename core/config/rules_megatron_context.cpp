// Context parallelism, and the lengths that it and sequence parallelism need.
#include "core/base/joined.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kCp = "context_parallel_size";
const char* const kType = "cp_comm_type";
const char* const kSizes = "hierarchical_context_parallel_sizes";
const std::vector<std::string> kTypes = {"p2p", "all_gather", "a2a", "a2a+p2p"};

void check_packing(const MegatronRules& r) {
  if (r.cp > 1 && !r.packing()) {
    r.error(kCp, fmt::format("{} needs policy.sequence_packing.enabled: true; nearest: 1 without packing", r.cp));
  }
}

// Rule 21: each sequence is cut into 2 x CP pieces, and under sequence parallelism each piece into TP.
void check_lengths(const MegatronRules& r) {
  const bool sequence_parallel = r.tp > 1 && r.flag("sequence_parallel");
  const int64_t needed = (r.cp > 1 ? 2 * r.cp : 1) * (sequence_parallel ? r.tp : 1);
  std::vector<std::string> factors;
  if (r.cp > 1) factors.push_back(fmt::format("2 x {} {}", kCp, r.cp));
  if (sequence_parallel) factors.push_back(fmt::format("tensor_model_parallel_size {} with sequence_parallel", r.tp));
  const std::string key = "policy.make_sequence_length_divisible_by";
  const std::optional<int64_t> multiple = r.c.integer(key);
  if (r.packing() && multiple && *multiple > 0 && *multiple % needed != 0) {
    r.c.error(key,
              fmt::format("got {}, wanted a multiple of {} ({}){}", *multiple, needed, joined(factors, " x "),
                          nearest_valid(*multiple, *multiple + needed, [&](int64_t v) { return v % needed == 0; })));
  }
  const std::string longest_key = "policy.max_total_sequence_length";
  const std::optional<int64_t> longest = r.c.integer(longest_key);
  if (r.cp > 1 && longest && *longest > 0 && *longest % (2 * r.cp) != 0) {
    r.c.error(
        longest_key,
        fmt::format("got {}, wanted a multiple of {} (2 x context_parallel_size {}){}", *longest, 2 * r.cp, r.cp,
                    nearest_valid(*longest, *longest + 2 * r.cp, [&](int64_t v) { return v % (2 * r.cp) == 0; })));
  }
}

std::vector<std::string> types(const MegatronRules& r) {
  const Node* value = r.c.root().find(r.path(kType));
  if (!value || value->is_string()) return {value ? value->as_string() : "p2p"};
  std::vector<std::string> result;
  if (value->is_list()) {
    for (const Node& item : value->items()) result.push_back(item.is_string() ? item.as_string() : "");
  }
  return result;
}

// Ulysses shares heads out over the ranks of one exchange.
void check_heads(const MegatronRules& r, int64_t ranks) {
  for (const auto& [what, heads] : {std::pair{"num_attention_heads", r.model.num_attention_heads},
                                    std::pair{"num_key_value_heads", r.model.num_key_value_heads}}) {
    if (!heads || *heads < 1 || *heads % (ranks * r.tp) == 0) continue;
    r.error(kType,
            fmt::format("a2a shares heads: {} {} is no multiple of {} (context {} x tensor parallel {}); nearest: "
                        "p2p",
                        what, *heads, ranks * r.tp, ranks, r.tp));
    return;
  }
}

std::optional<std::vector<int64_t>> sizes(const MegatronRules& r) {
  const Node* value = r.c.root().find(r.path(kSizes));
  if (!value || !value->is_list()) return std::nullopt;
  std::vector<int64_t> result;
  for (const Node& item : value->items()) {
    if (!item.is_int() || item.as_int() < 1 || item.as_int() > r.cp) return std::vector<int64_t>();
    result.push_back(item.as_int());
  }
  return result;
}

// Rule 22.
void check_hierarchy(const MegatronRules& r, const std::vector<std::string>& asked) {
  const bool hierarchical = std::ranges::find(asked, "a2a+p2p") != asked.end();
  const std::optional<std::vector<int64_t>> given = sizes(r);
  if (!hierarchical) {
    if (given) r.notice(kSizes, "has no effect: cp_comm_type is not a2a+p2p");
    return;
  }
  const std::string example = fmt::format("; nearest: [{}, {}]", r.cp % 2 ? 1 : 2, r.cp % 2 ? r.cp : r.cp / 2);
  if (!given) {
    return r.error(kSizes, fmt::format("a2a+p2p needs the sizes of its two exchanges, whose product is {} {}{}", kCp,
                                       r.cp, example));
  }
  if (given->size() != 2 || (*given)[0] * (*given)[1] != r.cp) {
    return r.error(
        kSizes, fmt::format("got [{}], wanted two sizes whose product is {} {}{}", joined(*given), kCp, r.cp, example));
  }
  check_heads(r, (*given)[0]);
}

void check_types(const MegatronRules& r) {
  const std::vector<std::string> asked = types(r);
  for (const std::string& type : asked) {
    if (std::ranges::find(kTypes, type) == kTypes.end()) {
      return r.error(kType, fmt::format("got '{}', wanted one of {}", type, joined(kTypes)));
    }
  }
  const Node* value = r.c.root().find(r.path(kType));
  if (value && value->is_list() && r.model.num_layers && static_cast<int64_t>(asked.size()) != *r.model.num_layers) {
    r.error(kType, fmt::format("a list of {}, wanted one for each of num_hidden_layers {}; nearest: one text for all",
                               asked.size(), *r.model.num_layers));
  }
  if (r.cp == 1) return;
  if (std::ranges::find(asked, "a2a") != asked.end()) check_heads(r, r.cp);
  check_hierarchy(r, asked);
}

}  // namespace

void check_megatron_context(const MegatronRules& r) {
  check_packing(r);
  check_lengths(r);
  check_types(r);
}

// What NeMo-RL asks of its two ways to compute log-probs.
void check_megatron_logprobs(const MegatronRules& r) {
  if (r.c.integer("policy.logprob_chunk_size") && !r.flag("defer_fp32_logits")) {
    r.c.error("policy.logprob_chunk_size", "needs policy.megatron_cfg.defer_fp32_logits: true");
  }
  if (!r.flag("use_fused_linear_logprobs")) return;
  const bool filters =
      r.c.number("policy.generation.top_p").value_or(1) < 1 || r.c.integer("policy.generation.top_k").value_or(-1) > 0;
  if (r.packing() || filters || r.cp > 1 || r.flag("distributed_data_parallel_config.overlap_param_gather")) {
    r.error("use_fused_linear_logprobs",
            "does not go with sequence_packing, top_p, top_k, context parallelism or overlap_param_gather");
  }
}

}  // namespace hexad::config
