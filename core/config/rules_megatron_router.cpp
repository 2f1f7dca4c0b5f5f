// The router of a model with experts.
#include "core/base/joined.hpp"
#include "core/base/suggest.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

std::optional<std::string> score_function(const MegatronRules& r) {
  const std::optional<std::string> given = r.text("moe_router_score_function");
  return given ? given : r.model.score_function;
}

// Rule 26: one expert's softmax over itself is always 1.
void check_one_expert(const MegatronRules& r) {
  const bool after = r.given("moe_router_pre_softmax") && !r.flag("moe_router_pre_softmax");
  if (after && r.model.experts_per_token == 1 && score_function(r) == "softmax") {
    r.error(
        "moe_router_pre_softmax",
        "false with num_experts_per_tok 1 gives every expert the weight 1 and the router no gradient; nearest: true");
  }
}

// Rule 27.
void check_expert_bias(const MegatronRules& r) {
  const bool known = r.model.num_experts.has_value(), has_bias = r.model.score_function == "sigmoid";
  if (r.flag("moe_router_enable_expert_bias")) {
    if (score_function(r) == "softmax") {
      r.error("moe_router_enable_expert_bias",
              "needs moe_router_score_function: sigmoid, got softmax, whose scores compete; nearest: false");
    } else if (known && !has_bias) {
      r.error("moe_router_enable_expert_bias", "true, but the model's routers have no expert bias; nearest: false");
    }
  }
  if (known && has_bias && r.text("moe_router_score_function") == "softmax") {
    r.error("moe_router_score_function", "softmax does not go with the expert bias of this model; nearest: sigmoid");
  }
  if (known && !has_bias && r.c.number(r.path("moe_router_bias_update_rate")).value_or(0) > 0) {
    r.notice("moe_router_bias_update_rate", "has no effect: the model's routers have no expert bias");
  }
}

// Rule 28.
void check_groups(const MegatronRules& r) {
  const std::optional<int64_t> given = r.integer("moe_router_num_groups"),
                               given_topk = r.integer("moe_router_group_topk");
  const std::optional<int64_t> groups = given ? given : r.model.expert_groups;
  const std::optional<int64_t> topk = given_topk ? given_topk : r.model.groups_per_token;
  const std::optional<int64_t> experts = r.model.num_experts;
  if (given_topk && !groups) {
    return r.error("moe_router_group_topk",
                   fmt::format("{} needs moe_router_num_groups, got none; nearest: {}", *given_topk, *given_topk));
  }
  if (!groups || *groups < 1 || (!given && !given_topk)) return;
  if (experts && *experts % *groups != 0) {
    r.error("moe_router_num_groups",
            fmt::format("moe_router_num_groups {} does not divide num_experts {}{}", *groups, *experts,
                        nearest_valid(*groups, *experts, [&](int64_t v) { return *experts % v == 0; })));
  }
  if (topk && *topk > *groups) {
    r.error("moe_router_group_topk",
            fmt::format("got {}, wanted at most moe_router_num_groups {}; nearest: {}", *topk, *groups, *groups));
  }
}

std::vector<double> coefficients(const MegatronRules& r) {
  const Node* value = r.c.value(r.path("moe_aux_loss_coeff"));
  std::vector<double> result;
  if (!value || !value->is_list()) return {r.c.number(r.path("moe_aux_loss_coeff")).value_or(0)};
  for (const Node& item : value->items()) result.push_back(item.is_number() ? item.as_double() : 0);
  return result;
}

void check_balancing(const MegatronRules& r) {
  static const std::vector<std::string> known = {"none", "aux_loss", "seq_aux_loss", "global_aux_loss"};
  const std::vector<std::string> types = balancing_types(r);
  const std::vector<double> weights = coefficients(r);
  for (const std::string& type : types) {
    if (std::ranges::find(known, type) != known.end()) continue;
    return r.error("moe_router_load_balancing_type",
                   fmt::format("got '{}', wanted {}{}", type, joined(known), did_you_mean(type, known)));
  }
  if (types.size() != weights.size()) {
    return r.error("moe_aux_loss_coeff", fmt::format("got {} of them, wanted one for each of the {} entries of "
                                                     "moe_router_load_balancing_type",
                                                     weights.size(), types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (weights[i] < 0) r.error("moe_aux_loss_coeff", fmt::format("got {}, wanted at least 0", weights[i]));
    if (types[i] == "none" && weights[i] > 0) {
      r.notice("moe_aux_loss_coeff", "has no effect: moe_router_load_balancing_type is none");
    }
    if (types[i] != "none" && weights[i] == 0) {
      r.notice("moe_router_load_balancing_type", fmt::format("{} has no effect: moe_aux_loss_coeff is 0", types[i]));
    }
  }
}

}  // namespace

std::vector<std::string> balancing_types(const MegatronRules& r) {
  const Node* value = r.c.value(r.path("moe_router_load_balancing_type"));
  std::vector<std::string> types;
  if (!value || !value->is_list()) return {r.text("moe_router_load_balancing_type").value_or("none")};
  for (const Node& item : value->items()) types.push_back(item.is_string() ? item.as_string() : "");
  return types;
}

void check_megatron_router(const MegatronRules& r) {
  check_one_expert(r);
  check_expert_bias(r);
  check_groups(r);
  check_balancing(r);
}

}  // namespace hexad::config
