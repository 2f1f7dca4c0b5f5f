// Rules of the dtensor backend: the device mesh of NeMo-RL, dp_replicate x dp_shard x cp x tp.
#include <numeric>

#include "core/config/rules_context.hpp"
#include "core/config/rules_fp8.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

struct Mesh {
  int64_t world = 1, tp = 1, cp = 1, replicas = 1, ep = 1;
};

std::string path(const char* name) { return std::string("policy.dtensor_cfg.") + name; }

// Nothing where a size is no such number (reported by the schema).
std::optional<Mesh> read_mesh(const RuleContext& c) {
  Mesh mesh;
  const std::pair<std::string, int64_t*> sizes[] = {{path("tensor_parallel_size"), &mesh.tp},
                                                    {path("context_parallel_size"), &mesh.cp},
                                                    {path("dp_replicate_size"), &mesh.replicas},
                                                    {path("expert_parallel_size"), &mesh.ep}};
  for (const auto& [key, size] : sizes) {
    const std::optional<int64_t> got = c.integer(key);
    if (!got || *got < 1 || *got > kMostRanks) return std::nullopt;
    *size = *got;
  }
  const std::optional<int64_t> world = c.training_ranks();
  if (!world) return std::nullopt;
  mesh.world = *world;
  return mesh;
}

void check_mesh(RuleContext& c, const Mesh& m) {
  const int64_t model = m.tp * m.cp;
  if (m.world % model != 0) {
    const bool blame_tp = m.world % m.tp != 0 || m.cp == 1;
    const int64_t other = blame_tp ? m.cp : m.tp;
    c.error(path(blame_tp ? "tensor_parallel_size" : "context_parallel_size"),
            fmt::format("tensor_parallel_size {} x context_parallel_size {} = {} does not divide the {} ranks{}", m.tp,
                        m.cp, model, m.world, nearest_valid(blame_tp ? m.tp : m.cp, m.world, [&](int64_t v) {
                          return m.world % (v * other) == 0;
                        })));
    return;
  }
  const int64_t dp = m.world / model;
  if (dp % m.replicas != 0) {
    c.error(path("dp_replicate_size"),
            fmt::format("got {}, wanted a divisor of the {} data-parallel ranks{}", m.replicas, dp,
                        nearest_valid(m.replicas, dp, [&](int64_t v) { return dp % v == 0; })));
  }
}

// Experts are shared out over the ranks of one copy of the model.
void check_expert_parallel(RuleContext& c, const Mesh& m, const std::optional<model::ModelShape>& model) {
  if (m.ep == 1 || m.world % (m.tp * m.cp * m.replicas) != 0) return;
  const std::string key = path("expert_parallel_size");
  const int64_t ranks = m.world / m.replicas;
  if (model && model->num_layers && !model->num_experts) {
    c.error(key, fmt::format("{} needs a model with experts, got a dense one; nearest: 1", m.ep));
    return;
  }
  const int64_t experts = model ? model->num_experts.value_or(0) : 0, both = std::gcd(ranks, experts);
  const std::string nearest = nearest_valid(m.ep, both, [&](int64_t v) { return both % v == 0; });
  if (ranks % m.ep != 0) {
    c.error(key, fmt::format("got {}, wanted a divisor of the {} ranks of dp_shard {} x context_parallel_size {} x "
                             "tensor_parallel_size {}{}",
                             m.ep, ranks, ranks / (m.cp * m.tp), m.cp, m.tp, nearest));
  } else if (experts > 0 && experts % m.ep != 0) {
    c.error(key, fmt::format("expert_parallel_size {} does not divide num_experts {}{}", m.ep, experts, nearest));
  }
  if (m.tp > 1 && !c.flag(path("sequence_parallel"))) {
    c.error(path("sequence_parallel"),
            fmt::format("expert_parallel_size {} with tensor_parallel_size {} needs sequence_parallel: true, for every "
                        "tensor-parallel rank would send the same tokens to the experts; nearest: true",
                        m.ep, m.tp));
  }
}

void check_tp_divides(RuleContext& c, int64_t tp, const char* what, std::optional<int64_t> size) {
  if (!size || *size < 1 || *size % tp == 0) return;
  c.error(path("tensor_parallel_size"),
          fmt::format("tensor_parallel_size {} does not divide {} {}{}", tp, what, *size,
                      nearest_valid(tp, *size, [&](int64_t v) { return *size % v == 0; })));
}

void check_tensor_parallel(RuleContext& c, const Mesh& m, const model::ModelShape& model) {
  const int64_t tp = m.tp;
  check_tp_divides(c, tp, "num_attention_heads", model.num_attention_heads);
  if (!model.num_experts) check_tp_divides(c, tp, "intermediate_size", model.intermediate_size);
  if (m.ep == 1) check_tp_divides(c, tp, "moe_intermediate_size", model.moe_intermediate_size);
  if (!model.num_key_value_heads || *model.num_key_value_heads < 1) return;
  const int64_t groups = *model.num_key_value_heads, heads = model.num_attention_heads.value_or(groups);
  const auto fits = [&](int64_t v) { return groups % v == 0 || v % groups == 0; };
  if (fits(tp)) return;
  c.error(path("tensor_parallel_size"),
          fmt::format("num_key_value_heads {} is neither a multiple nor a divisor of tensor_parallel_size {}{}", groups,
                      tp, nearest_valid(tp, heads, [&](int64_t v) { return fits(v) && heads % v == 0; })));
}

}  // namespace

void check_dtensor_rules(RuleContext& c) {
  if (c.backend() != "dtensor") return;
  check_fp8_rules(c, "policy.dtensor_cfg");
  const std::optional<Mesh> mesh = read_mesh(c);
  if (!mesh) return;
  check_mesh(c, *mesh);
  if (mesh->tp == 1 && c.flag(path("sequence_parallel")))
    c.notice(path("sequence_parallel"), "no effect: it needs tensor_parallel_size above 1, got 1");
  const std::optional<model::ModelShape> shape = c.model_shape();
  if (shape && mesh->tp > 1) check_tensor_parallel(c, *mesh, *shape);
  check_expert_parallel(c, *mesh, shape);
  ContextExchangeRules{c, "policy.dtensor_cfg", shape.value_or(model::ModelShape()), mesh->cp, mesh->tp}.check();
}

}  // namespace hexad::config
