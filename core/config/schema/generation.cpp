#include "core/config/algorithm.hpp"
#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

void add_sampling(Schema& s) {
  s.add("policy.generation.max_new_tokens", kInt, "${policy.max_total_sequence_length}", "most tokens of a response")
      .at_least(1);
  s.add("policy.generation.temperature", kFloat, "1.0",
        "sampling temperature; training divides its logits by it too; 0 (the most likely token) in evaluations alone")
      .at_least(0);
  s.add("policy.generation.top_p", kFloat, "1.0",
        "sample from the likeliest tokens of this total probability; training too")
      .above(0)
      .at_most(1);
  s.add("policy.generation.top_k", kInt | kNull, "null",
        "sample from so many likeliest tokens; null, 0 or -1: all; training too")
      .at_least(-1);
  s.add("policy.generation.min_p", kFloat | kNull, "null", "leave out tokens less likely than this times the likeliest")
      .at_least(0)
      .at_most(1);
  s.add("policy.generation.val_temperature", kFloat, "${.temperature}", "temperature in validation: that of training")
      .not_filled();
  s.add("policy.generation.val_top_p", kFloat, "${.top_p}", "top_p in validation: that of training").not_filled();
  s.add("policy.generation.val_top_k", kInt | kNull, "${.top_k}", "top_k in validation: that of training").not_filled();
  s.add("policy.generation.stop_token_ids", kList | kNull, "null",
        "tokens that end a response; null: the model's end of text")
      .elements(kInt);
  s.add("policy.generation.stop_strings", kList | kNull, "null", "texts that end a response, part of it")
      .elements(kText);
  s.add("policy.generation.ignore_eos", kBool, "false", "go on after the end-of-text token");
  s.add("policy.generation.imposed_lengths", kList | kNull, "null",
        "tokens of each response of a training rollout, in order, whatever is sampled; for measuring")
      .elements(kInt);
  s.add("policy.generation.bad_words", kList | kNull, "null", "texts that are never sampled")
      .unavailable("bad_words", {"null", "[]"});
}

void add_placement(Schema& s) {
  s.section("policy.generation.colocated", "where generation runs");
  s.add("policy.generation.colocated.enabled", kBool, "true",
        "in the workers that train; false: the last ranks of the run generate and the others train");
  s.add("policy.generation.colocated.sleep_level", kInt, "1",
        "what the generator gives back while the policy computes: 0 nothing, 1 the KV cache, 2 the weights too")
      .at_least(0)
      .at_most(2);
  s.section("policy.generation.colocated.resources", "the devices of generation that is not colocated");
  s.add("policy.generation.colocated.resources.gpus_per_node", kInt | kNull, "null",
        "devices (on a CPU: ranks) of one node that generate; of a cluster of several nodes all of a node's")
      .at_least(1);
  s.add("policy.generation.colocated.resources.num_nodes", kInt | kNull, "null",
        "nodes that generate, of a cluster of several; null or 1 on one node")
      .at_least(1);
  s.add("policy.generation.refit_transport", kText | kNull, "null",
        "how weights reach a generator's servers: disk, gloo, nccl or ipc (CUDA IPC, one GPU); null: what they offer")
      .unavailable("another weight transport", {"null", "disk", "gloo", "ipc", "nccl"});
  s.section("policy.generation.refit_cfg", "settings of those transports").unavailable("another weight transport", {});
  s.section("policy.generation.refit_cfg.nixl", "NIXL");
  const std::string at = "policy.generation.refit_cfg.nixl";
  s.add(at + ".update_weights_bucket_memory_ratio", kFloat, "0.05", "bucket size as a part of free memory")
      .above(0)
      .at_most(1);
  s.add(at + ".device", kText, "cuda", "where buckets lie");
  s.add(at + ".backend_name", kText, "UCX", "network library");
  s.add(at + ".backend_init_params", kMap | kNull, "null", "its parameters").open();
  s.add(at + ".release_after_refit", kBool, "false", "free buckets after an update");
  s.add(at + ".shard_expert_weights", kBool, "false", "send only local experts");
  s.add("policy.generation.refit_cfg.sparse", kMap | kNull, "null", "sparse weight differences").open();
}

}  // namespace

void add_generation(Schema& s) {
  s.section("policy.generation", "the generator that makes rollouts");
  s.add("policy.generation.backend", kText, kDefaultGenerator,
        "the plugin that generates: a name that `hexad plugin list` shows, one of its other names, or a path. Engines "
        "of other "
        "systems that no plugin serves are read as the default, with a line that says so");
  s.add("policy.generation.plugin_config", kMap | kNull, "{}", "keys of the generator plugin's own").open();
  add_sampling(s);
  add_placement(s);
  s.add("policy.generation.use_async_rollouts", kBool, "false", "of another of NeMo-RL's generators")
      .accepted("every generator serves all samples of a step at once");
  s.add("policy.generation.quant_cfg", kText | kNull, "null", "quantised generation")
      .unavailable("quantised generation", {"null"});
  s.add("policy.generation.real_quant", kBool, "false", "quantised generation").unavailable("quantised generation");
  s.add("policy.generation.real_quant_ignore", kList | kNull, "null", "layers left out of it")
      .elements(kText)
      .dormant();
  s.add("policy.generation.real_quant_export_cpu_offload", kBool, "true", "of quantised generation").dormant();
}

}  // namespace hexad::config
