#include "core/config/rules_megatron.hpp"

#include "core/config/schema/schema.hpp"

namespace hexad::config {
namespace {

// The layout, or nothing where a size is no such number (reported by the schema).
std::optional<MegatronRules> layout(RuleContext& c) {
  MegatronRules rules{c, {}};
  const std::pair<const char*, int64_t*> sizes[] = {
      {"tensor_model_parallel_size", &rules.tp},   {"pipeline_model_parallel_size", &rules.pp},
      {"context_parallel_size", &rules.cp},        {"expert_model_parallel_size", &rules.ep},
      {"expert_tensor_parallel_size", &rules.etp},
  };
  for (const auto& [name, size] : sizes) {
    const std::optional<int64_t> got = rules.integer(name);
    if (!got || *got < 1 || *got > kMostRanks) return std::nullopt;
    *size = *got;
  }
  const std::optional<int64_t> world = c.training_ranks();
  if (!world) return std::nullopt;
  rules.world = *world;
  return rules;
}

// The sizes of the model; where they are not at hand, one line says so.
void read_model(MegatronRules& rules) {
  const std::optional<std::string> name = rules.c.text("policy.model_name");
  if (!name) return;
  if (const std::optional<model::ModelShape> shape = rules.c.model_shape()) {
    rules.model = *shape;
  } else if (rules.tp * rules.pp * rules.cp * rules.ep * rules.etp > 1) {
    rules.c.notice("policy.model_name",
                   fmt::format("there is no config.json in '{}' here: what depends on heads, layers and experts is "
                               "checked when the model is loaded",
                               *name));
  }
}

// Keys in model_overrides that have no place of their own here.
void check_overrides(RuleContext& c) {
  const Node* overrides = c.root().find("policy.megatron_cfg.model_overrides");
  if (!overrides || !overrides->is_map()) return;
  for (const auto& [name, value] : overrides->entries()) {
    const std::string own = MegatronRules::path(name);
    const std::string message = schema().find(own) && name != "model_overrides"
                                    ? fmt::format("{} says otherwise: give the key once", own)
                                    : "no key of policy.megatron_cfg; docs/config.md lists them";
    c.error(MegatronRules::path("model_overrides." + name), message);
  }
}

}  // namespace

int64_t MegatronRules::virtual_stages() const {
  const auto bounded = [](int64_t stages) { return std::clamp<int64_t>(stages, 1, kMostRanks); };
  if (const std::optional<int64_t> stages = integer("virtual_pipeline_model_parallel_size")) return bounded(*stages);
  const std::optional<int64_t> layers = integer("num_layers_per_virtual_pipeline_stage");
  if (!layers || *layers < 1 || !model.num_layers || *layers > *model.num_layers) return 1;
  return *model.num_layers % (pp * *layers) == 0 ? bounded(*model.num_layers / (pp * *layers)) : 1;
}

std::optional<int64_t> MegatronRules::micro_batches() const {
  const std::optional<int64_t> global = c.integer("policy.train_global_batch_size");
  const std::optional<int64_t> micro = c.integer("policy.train_micro_batch_size");
  if (packing() || dynamic_batching() || !global || !micro || *global < 1 || *micro < 1 || *micro > kMostRanks)
    return {};
  if (dp() == 0 || *global % (*micro * dp())) return {};
  return *global / (*micro * dp());
}

std::string nearest_valid(int64_t value, int64_t highest, const std::function<bool(int64_t)>& valid) {
  constexpr int64_t kFarthest = 100'000;
  const auto search = [&](int64_t from, int64_t step) -> std::optional<int64_t> {
    for (int64_t at = from; at >= 1 && at <= highest && std::abs(at - value) <= kFarthest; at += step) {
      if (valid(at)) return at;
    }
    return std::nullopt;
  };
  const std::optional<int64_t> below = search(std::min(value - 1, highest), -1), above = search(value + 1, 1);
  if (below && above) return fmt::format("; nearest: {} or {}", *below, *above);
  if (below || above) return fmt::format("; nearest: {}", below ? *below : *above);
  return "";
}

void check_megatron_rules(RuleContext& c) {
  if (c.backend() != "megatron") {
    const Node* section = c.root().find("policy.megatron_cfg");
    const bool more = section && section->is_map() && (section->entries().size() > 1 || !section->find("enabled"));
    if (more || c.flag("policy.megatron_cfg.enabled")) {
      c.notice("policy.megatron_cfg", fmt::format("not read: {} trains", c.backend()));
    }
    return;
  }
  check_overrides(c);
  std::optional<MegatronRules> rules = layout(c);
  if (!rules) return;
  read_model(*rules);
  for (const auto check : {check_megatron_grid, check_megatron_tensor, check_megatron_pipeline, check_megatron_layout,
                           check_megatron_schedule, check_megatron_context, check_megatron_moe, check_megatron_router,
                           check_megatron_optimizer, check_megatron_lr, check_megatron_recompute,
                           check_megatron_precision, check_megatron_logprobs}) {
    check(*rules);
  }
}

}  // namespace hexad::config
