#include "core/config/rules.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

constexpr const char* kRanksKey = "policy.generation.native_cfg.tensor_parallel_size";

// Only NeMo-Gym samples otherwise in validation than in training.
void check_validation_sampling(RuleContext& c, const std::string& name, double otherwise) {
  const std::string key = "policy.generation." + name, val_key = "policy.generation.val_" + name;
  if (!c.root().has(val_key)) return;
  const double train = c.number(key).value_or(otherwise);
  const double val = c.number(val_key).value_or(otherwise);
  if (train == val) return;
  c.error(val_key, fmt::format("got {}, wanted that of training, {} is {}; sampling of its own in validation needs "
                               "NeMo-Gym, which is not available in this version",
                               val, key, train));
}

void check_shared_out(RuleContext& c, int64_t ranks, const char* what, std::optional<int64_t> size) {
  if (!size || *size < 1 || *size % ranks == 0) return;
  c.error(kRanksKey, fmt::format("tensor_parallel_size {} does not divide {} {}{}", ranks, what, *size,
                                 nearest_valid(ranks, *size, [&](int64_t v) { return *size % v == 0; })));
}

// Replicas of several ranks: as many as fit the run, and a model that they can share.
void check_replicas(RuleContext& c) {
  const std::optional<int64_t> ranks = c.integer(kRanksKey);
  if (!ranks || *ranks < 2) return;
  const int64_t nodes = c.integer("cluster.num_nodes").value_or(1), apart = c.generation_ranks().value_or(0);
  const int64_t devices = apart > 0 && nodes == 1 ? apart : c.integer("cluster.gpus_per_node").value_or(0);
  if (devices > 0 && devices % *ranks != 0) {
    c.error(kRanksKey, fmt::format("tensor_parallel_size {} does not divide the {} ranks {}{}", *ranks, devices,
                                   apart > 0 && nodes == 1 ? "that generate" : "of a node",
                                   nearest_valid(*ranks, devices, [&](int64_t v) { return devices % v == 0; })));
  }
  const std::optional<model::ModelShape> model = c.model_shape();
  if (!model) return;
  if (model->num_experts || model->latent_attention) {
    c.error(kRanksKey, fmt::format("{} needs a dense model without multi-head latent attention; nearest: 1", *ranks));
    return;
  }
  check_shared_out(c, *ranks, "num_attention_heads", model->num_attention_heads);
  check_shared_out(c, *ranks, "intermediate_size", model->intermediate_size);
  const int64_t heads = model->num_key_value_heads.value_or(0);
  if (heads > 0 && heads % *ranks != 0 && *ranks % heads != 0) {
    c.error(kRanksKey, fmt::format("num_key_value_heads {} is neither a multiple nor a divisor of tensor_parallel_size "
                                   "{}; nearest: 1",
                                   heads, *ranks));
  }
}

// native reads the policy's weights where they lie, or takes its shards of them.
void check_transport(RuleContext& c) {
  const std::string key = "policy.generation.refit_transport";
  const std::string backend = c.text("policy.generation.backend").value_or("native");
  const std::optional<std::string> transport = c.text(key);
  if (!transport || backend == "vllm") return;
  c.error(key,
          fmt::format("got {}, which is a way to vLLM's servers, and policy.generation.backend is {}; nearest: null",
                      *transport, backend));
}

}  // namespace

void check_generation_rules(RuleContext& c) {
  check_transport(c);
  check_validation_sampling(c, "temperature", 1);
  check_validation_sampling(c, "top_p", 1);
  check_validation_sampling(c, "top_k", -1);
  const std::optional<int64_t> longest = c.integer("policy.max_total_sequence_length");
  if (c.text("policy.generation.backend").value_or("native") == "native") {
    const std::string key = "policy.generation.native_cfg.max_num_batched_tokens";
    const std::optional<int64_t> tokens = c.integer(key);
    if (!c.flag("policy.generation.native_cfg.enable_chunked_prefill") && tokens && longest && *tokens < *longest) {
      c.error(key, fmt::format("got {}, wanted at least policy.max_total_sequence_length ({}) without "
                               "policy.generation.native_cfg.enable_chunked_prefill",
                               *tokens, *longest));
    }
    check_replicas(c);
  }
}

}  // namespace hexad::config
