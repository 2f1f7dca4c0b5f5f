#include "core/config/typed/run_config_read.hpp"

namespace hexad::config {
namespace {

TokenizerConfig read_tokenizer(const Reader& r, const std::string& model_name) {
  TokenizerConfig c;
  c.name = model_name;
  r.read("name", c.name);
  r.read("chat_template", c.chat_template);
  r.read("chat_template_kwargs", c.chat_template_kwargs);
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

GenerationConfig read_generation(const yaml::Node& root, const RunFacts& facts) {
  const std::string at = "policy.generation";
  const Reader r(root, at);
  GenerationConfig c;
  c.plugin = facts.generator_to_load;
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
  c.replica_size = facts.replica_ranks;
  r.read("colocated.enabled", c.colocated.enabled);
  r.read("colocated.sleep_level", c.colocated.sleep_level);
  if (!c.colocated.enabled) c.colocated.sleep_level = 0;  // nobody else wants its memory
  r.read("colocated.resources.gpus_per_node", c.colocated.gpus_per_node);
  r.read("colocated.resources.num_nodes", c.colocated.num_nodes);
  return c;
}

}  // namespace

PolicyConfig read_policy(const yaml::Node& root, const RunFacts& facts) {
  const Reader r(root, "policy");
  PolicyConfig c;
  c.backend = facts.backend_to_load;
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
  c.dynamic_batching = read_batching(Reader(root, "policy.dynamic_batching"));
  c.sequence_packing = read_batching(Reader(root, "policy.sequence_packing"));
  r.read("make_sequence_length_divisible_by", c.make_sequence_length_divisible_by);
  r.read("max_grad_norm", c.max_grad_norm);
  r.read("optimizer.name", c.optimizer.name);
  r.read("optimizer.kwargs", c.optimizer.kwargs);
  r.read("scheduler", c.scheduler);
  if (facts.max_grad_norm) c.max_grad_norm = *facts.max_grad_norm;
  c.learning_rate = facts.learning_rate;
  c.schedule = facts.schedule;
  c.generation = read_generation(root, facts);
  return c;
}

}  // namespace hexad::config
