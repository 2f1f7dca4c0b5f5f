// The router of a model with experts.
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
  const bool enabled = r.flag("moe_router_enable_expert_bias");
  if (enabled && score_function(r) == "softmax") {
    r.error("moe_router_enable_expert_bias",
            "needs moe_router_score_function: sigmoid, got softmax, whose scores compete; nearest: false");
  }
  if (!enabled && r.c.number(r.path("moe_router_bias_update_rate")).value_or(0) > 0) {
    r.notice("moe_router_bias_update_rate", "has no effect without moe_router_enable_expert_bias: true");
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

void check_balancing(const MegatronRules& r) {
  const std::string type = r.text("moe_router_load_balancing_type").value_or("none");
  const double coefficient = r.c.number(r.path("moe_aux_loss_coeff")).value_or(0);
  if (type == "none" && coefficient > 0) {
    r.notice("moe_aux_loss_coeff", "has no effect: moe_router_load_balancing_type is none");
  }
  if (type != "none" && coefficient == 0) {
    r.notice("moe_router_load_balancing_type", fmt::format("{} has no effect: moe_aux_loss_coeff is 0", type));
  }
}

}  // namespace

void check_megatron_router(const MegatronRules& r) {
  check_one_expert(r);
  check_expert_bias(r);
  check_groups(r);
  check_balancing(r);
}

}  // namespace hexad::config
