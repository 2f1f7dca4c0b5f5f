// The keys of policy.megatron_cfg about experts: moe_*, freeze_moe_router; and policy.router_replay.
#pragma once
#include <optional>

#include "modeling/backend/settings/model_settings.hpp"
#include "modeling/backend/router/replay.hpp"
#include "modeling/moe/router.hpp"

namespace hexad::megatron {

struct MoeSettings {
  modeling::RouterConfig router;
  std::optional<at::ScalarType> router_dtype = at::kDouble;  // of the logits; absent: the activations'
  bool freeze_router = false;                                // its weight is not trained
  double bias_update_rate = 0;                               // of the expert bias, once a step
  bool gather_tokens = false;   // moe_token_dispatcher_type: allgather, in place of alltoall
  bool overlap_shared = false;  // shared experts are computed while tokens travel
  modeling::ReplaySource replay = modeling::ReplaySource::none;

  bool balances() const { return router.aux_loss + router.seq_aux_loss + router.global_aux_loss + router.z_loss > 0; }
};

// Also applies the keys that replace what the model's config.json says about routing to `model`. Throws sdk::Error or
// modeling::Error: wrong values, contradictions.
MoeSettings read_moe_settings(const sdk::Config& config, modeling::ModelConfig& model);

}  // namespace hexad::megatron
