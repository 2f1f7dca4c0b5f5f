// Rules of the megatron backend. Their numbers are those of the list in Megatron-Core's transformer_config.py,
// arguments.py, parallel_state.py and schedules.py, checked here before any worker starts.
#pragma once
#include <functional>

#include "core/config/rules.hpp"

namespace hexad::config {

// The sizes that the rules compare, and where to say what is wrong.
struct MegatronRules {
  RuleContext& c;
  model::ModelShape model;  // without fields where the model's config.json is not at hand
  int64_t world = 1, tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;

  // Data-parallel ranks of the dense part and of the experts; 0 where the world is no multiple (reported by the grid).
  int64_t dp() const { return world % (tp * pp * cp) ? 0 : world / (tp * pp * cp); }
  int64_t edp() const { return world % (etp * ep * pp) ? 0 : world / (etp * ep * pp); }

  // Keys of policy.megatron_cfg by their name in it.
  static std::string path(const std::string& name) { return "policy.megatron_cfg." + name; }
  bool flag(const std::string& name) const { return c.flag(path(name)); }
  std::optional<int64_t> integer(const std::string& name) const { return c.integer(path(name)); }
  std::optional<std::string> text(const std::string& name) const { return c.text(path(name)); }
  // True if the configuration itself holds the key, with a value that is not null.
  bool given(const std::string& name) const { return c.root().has(path(name)); }
  void error(const std::string& name, std::string message) const { c.error(path(name), std::move(message)); }
  void notice(const std::string& name, std::string message) const { c.notice(path(name), std::move(message)); }

  bool packing() const { return c.flag("policy.sequence_packing.enabled"); }
  bool dynamic_batching() const { return c.flag("policy.dynamic_batching.enabled"); }
  // Chunks of a rank, however they are asked for; 1 without the interleaved schedule.
  int64_t virtual_stages() const;
  bool interleaved() const;
  // Micro-batches of an optimizer step; nothing where they are formed by tokens or the batch does not divide.
  std::optional<int64_t> micro_batches() const;
};

// "; nearest: 2 or 4": the valid values next to `value`, from 1 to `highest`, on either side. "" if there is none.
std::string nearest_valid(int64_t value, int64_t highest, const std::function<bool(int64_t)>& valid);

// moe_router_load_balancing_type as a list.
std::vector<std::string> balancing_types(const MegatronRules& rules);

void check_megatron_grid(const MegatronRules& rules);
void check_megatron_tensor(const MegatronRules& rules);
void check_megatron_pipeline(const MegatronRules& rules);
void check_megatron_layout(const MegatronRules& rules);
void check_megatron_schedule(const MegatronRules& rules);
void check_megatron_context(const MegatronRules& rules);
void check_megatron_moe(const MegatronRules& rules);
void check_megatron_router(const MegatronRules& rules);
void check_megatron_optimizer(const MegatronRules& rules);
void check_megatron_lr(const MegatronRules& rules);
void check_megatron_recompute(const MegatronRules& rules);
void check_megatron_precision(const MegatronRules& rules);
void check_megatron_logprobs(const MegatronRules& rules);

}  // namespace hexad::config
