// Experts: how they are shared out, dispatched and bounded.
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kEp = "expert_model_parallel_size";
const char* const kDispatcher = "moe_token_dispatcher_type";

bool allgather(const MegatronRules& r) { return r.text(kDispatcher) == "allgather"; }

// Rules 7 and 8. A model whose config.json is at hand and names no experts is dense.
void check_expert_parallel(const MegatronRules& r) {
  if (r.ep == 1 || !r.model.num_layers) return;
  if (!r.model.num_experts) {
    return r.error(kEp, fmt::format("{} needs a model with experts, got a dense one; nearest: 1", r.ep));
  }
  const int64_t experts = *r.model.num_experts;
  if (experts % r.ep != 0) {
    r.error(kEp, fmt::format("{} {} does not divide num_experts {}{}", kEp, r.ep, experts,
                             nearest_valid(r.ep, experts, [&](int64_t v) { return experts % v == 0; })));
  }
}

// Rule 9.
void check_expert_sequence_parallel(const MegatronRules& r) {
  if (r.model.num_experts && r.tp > 1 && !r.flag("sequence_parallel")) {
    r.error("sequence_parallel",
            fmt::format("training experts with tensor_model_parallel_size {} needs sequence_parallel: true, for every "
                        "tensor-parallel rank would route the same tokens; nearest: true",
                        r.tp));
  }
}

// Rule 10.
void check_bias(const MegatronRules& r) {
  if (r.model.num_experts && r.model.linear_bias && r.etp > 1) {
    r.error(
        "expert_tensor_parallel_size",
        fmt::format("got {}, but the experts' linear layers have biases (mlp_bias), which cannot be shared; nearest: 1",
                    r.etp));
  }
}

// Rule 29.
void check_dispatcher(const MegatronRules& r) {
  if (!allgather(r)) return;
  if (r.pp > 1 && (r.packing() || r.dynamic_batching())) {
    r.error(kDispatcher, fmt::format("allgather needs all micro-batches to have one length, but {} makes them differ "
                                     "between {} pipeline stages; nearest: alltoall",
                                     r.packing() ? "policy.sequence_packing" : "policy.dynamic_batching", r.pp));
  }
  if (r.flag("moe_shared_expert_overlap")) {
    r.error("moe_shared_expert_overlap", "needs moe_token_dispatcher_type: alltoall, got allgather; nearest: false");
  }
}

void check_expert_capacity(const MegatronRules& r) {
  const bool bounded = r.c.number(r.path("moe_expert_capacity_factor")).has_value();
  const std::vector<std::string> types = balancing_types(r);
  if (bounded && std::ranges::find(types, "global_aux_loss") != types.end()) {
    r.error("moe_expert_capacity_factor",
            "goes with moe_router_load_balancing_type none, aux_loss or seq_aux_loss, got "
            "global_aux_loss; nearest: aux_loss");
  }
  if (r.flag("moe_pad_expert_input_to_capacity") && !bounded) {
    r.error("moe_pad_expert_input_to_capacity", "needs moe_expert_capacity_factor, got none; nearest: 1.0, or false");
  }
  if (r.given("moe_token_drop_policy") && !bounded) {
    r.notice("moe_token_drop_policy", "has no effect: without moe_expert_capacity_factor no token is dropped");
  }
}

}  // namespace

void check_megatron_moe(const MegatronRules& r) {
  check_expert_parallel(r);
  check_expert_sequence_parallel(r);
  check_bias(r);
  check_dispatcher(r);
  check_expert_capacity(r);
}

}  // namespace hexad::config
