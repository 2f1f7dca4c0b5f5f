#include "core/config/run_config_read.hpp"

namespace hexad::config {
namespace {

nlohmann::ordered_json section_json(const Node& root, const std::string& path) {
  return root.has(path) ? root.at(path).to_json() : nlohmann::ordered_json::object();
}

TokenizerConfig read_tokenizer(const Reader& r, const std::string& model_name) {
  TokenizerConfig c;
  c.name = model_name;
  r.read("name", c.name);
  r.read("chat_template", c.chat_template);
  r.read("chat_template_kwargs", c.chat_template_kwargs);
  return c;
}

DtensorConfig read_dtensor(const Reader& r) {
  DtensorConfig c;
  r.read("enabled", c.enabled);
  r.read("cpu_offload", c.cpu_offload);
  r.read("sequence_parallel", c.sequence_parallel);
  r.read("activation_checkpointing", c.activation_checkpointing);
  r.read("tensor_parallel_size", c.tensor_parallel_size);
  r.read("context_parallel_size", c.context_parallel_size);
  r.read("dp_replicate_size", c.dp_replicate_size);
  r.read("reshard_after_forward", c.reshard_after_forward);
  return c;
}

BatchingConfig read_batching(const Reader& r) {
  BatchingConfig c;
  r.read("enabled", c.enabled);
  r.read("train_mb_tokens", c.train_mb_tokens);
  r.read("logprob_mb_tokens", c.logprob_mb_tokens);
  r.read("sequence_length_round", c.sequence_length_round);
  r.read("algorithm", c.algorithm);
  r.read("microbatch_order", c.microbatch_order);
  return c;
}

NativeGeneratorConfig read_native(const Reader& r) {
  NativeGeneratorConfig c;
  r.read("kv_block_size", c.kv_block_size);
  r.read("kv_cache_gb", c.kv_cache_gb);
  r.read("max_num_seqs", c.max_num_seqs);
  r.read("max_num_batched_tokens", c.max_num_batched_tokens);
  r.read("enable_chunked_prefill", c.enable_chunked_prefill);
  r.read("enable_prefix_sharing", c.enable_prefix_sharing);
  r.read("tensor_parallel_size", c.tensor_parallel_size);
  r.read("deterministic", c.deterministic);
  return c;
}

GenerationConfig read_generation(const Node& root) {
  const std::string at = "policy.generation";
  const Reader r(root, at);
  GenerationConfig c;
  r.read("backend", c.backend);
  c.plugin = c.backend == "vllm" ? "vllm_bridge" : c.backend;
  r.read("plugin_config", c.plugin_config);
  r.read("max_new_tokens", c.max_new_tokens);
  r.read("temperature", c.temperature);
  r.read("top_p", c.top_p);
  r.read("top_k", c.top_k);
  if (c.top_k && *c.top_k <= 0) c.top_k.reset();
  r.read("min_p", c.min_p);
  if (root.has(at + ".stop_token_ids")) c.stop_token_ids = root.as_ints(at + ".stop_token_ids");
  r.read("stop_strings", c.stop_strings);
  r.read("ignore_eos", c.ignore_eos);
  if (root.has(at + ".imposed_lengths")) c.imposed_lengths = root.as_ints(at + ".imposed_lengths");
  c.native_cfg = read_native(Reader(root, at + ".native_cfg"));
  if (c.plugin == "native") c.replica_size = c.native_cfg.tensor_parallel_size;
  r.read("colocated.enabled", c.colocated.enabled);
  r.read("colocated.sleep_level", c.colocated.sleep_level);
  if (!c.colocated.enabled) c.colocated.sleep_level = 0;  // nobody else wants its memory
  r.read("colocated.resources.gpus_per_node", c.colocated.gpus_per_node);
  r.read("colocated.resources.num_nodes", c.colocated.num_nodes);
  c.generation = section_json(root, at);
  return c;
}

// policy.backend, or whichever of the two blocks is enabled.
std::string backend_of(const Node& root) {
  if (root.has("policy.backend")) return root.as_string("policy.backend");
  bool megatron = false;
  Reader(root, "policy.megatron_cfg").read("enabled", megatron);
  return megatron ? "megatron" : "dtensor";
}

}  // namespace

PolicyConfig read_policy(const Node& root) {
  const Reader r(root, "policy");
  PolicyConfig c;
  c.backend = backend_of(root);
  r.read("plugin_config", c.plugin_config);
  r.read("model_name", c.model_name);
  r.read("random_init_seed", c.random_init_seed);
  c.tokenizer = read_tokenizer(Reader(root, "policy.tokenizer"), c.model_name);
  r.read("hf_config_overrides", c.hf_config_overrides);
  r.read("train_global_batch_size", c.train_global_batch_size);
  r.read("train_micro_batch_size", c.train_micro_batch_size);
  r.read("logprob_batch_size", c.logprob_batch_size);
  r.read("max_total_sequence_length", c.max_total_sequence_length);
  r.read("precision", c.precision);
  r.read("logprob_chunk_size", c.logprob_chunk_size);
  r.read("deterministic", c.deterministic);
  r.read("batch_invariant", c.batch_invariant);
  c.dtensor_cfg = read_dtensor(Reader(root, "policy.dtensor_cfg"));
  c.megatron_cfg = read_megatron(root);
  c.dynamic_batching = read_batching(Reader(root, "policy.dynamic_batching"));
  c.sequence_packing = read_batching(Reader(root, "policy.sequence_packing"));
  r.read("make_sequence_length_divisible_by", c.make_sequence_length_divisible_by);
  r.read("max_grad_norm", c.max_grad_norm);
  r.read("optimizer.name", c.optimizer.name);
  r.read("optimizer.kwargs", c.optimizer.kwargs);
  r.read("scheduler", c.scheduler);
  c.generation = read_generation(root);
  c.policy = section_json(root, "policy");
  if (c.backend == "megatron") {
    c.max_grad_norm = c.megatron_cfg.optimizer.clip_grad;
    c.policy["megatron_cfg"].update(to_json(c.megatron_cfg));
  }
  return c;
}

}  // namespace hexad::config
