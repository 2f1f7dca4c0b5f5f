// The generator, its sampling, and lengths.
#include "compat/verl/pass.hpp"

namespace hexad::compat::verl {
namespace {

// The engines of verl that a plugin serves are those of vLLM; the others' settings are of theirs.
void translate_engine(Pass& p) {
  const std::string name = p.file.text(kRollout + "name").value_or("");
  const std::string to = "policy.generation.";
  const char* const servers[] = {"data_parallel_size", "expert_parallel_size", "pipeline_model_parallel_size"};
  if (name != "vllm") {
    p.out.set(to + "backend", std::string("native"), name.empty() ? "" : name + ": native generates");
    if (p.file.value(kRollout + "max_num_seqs"))
      p.out.set(to + "native_cfg.max_num_seqs", p.file.count(kRollout + "max_num_seqs"));
    const int64_t ranks = p.file.count(kRollout + "tensor_model_parallel_size");
    if (p.file.given(kRollout + "tensor_model_parallel_size"))
      p.out.set(to + "native_cfg.tensor_parallel_size", ranks, "rollout.tensor_model_parallel_size");
    for (const char* other : {"gpu_memory_utilization", "enforce_eager", "max_model_len"})
      p.file.value(kRollout + other);
  } else {
    p.out.set(to + "backend", std::string("vllm"));
    p.out.set(to + "vllm_cfg.tensor_parallel_size", p.file.count(kRollout + "tensor_model_parallel_size"));
    p.out.put(to + "vllm_cfg.gpu_memory_utilization", p.file.value(kRollout + "gpu_memory_utilization"));
    p.out.put(to + "vllm_cfg.enforce_eager", p.file.value(kRollout + "enforce_eager"));
    p.out.put(to + "vllm_cfg.enable_prefix_caching", p.file.value(kRollout + "enable_prefix_caching"));
    p.out.put(to + "vllm_cfg.pipeline_parallel_size", p.file.value(kRollout + "pipeline_model_parallel_size"));
    if (p.file.integer(kRollout + "expert_parallel_size").value_or(1) > 1)
      p.out.set(to + "vllm_cfg.enable_expert_parallel", true);
  }
  for (const char* size : servers) p.file.value(kRollout + size);
  for (const char* own : {"max_num_batched_tokens", "max_num_seqs", "enable_chunked_prefill", "enable_prefix_caching"})
    p.file.value(kRollout + own);
}

void translate_lengths(Pass& p) {
  const int64_t prompt = p.file.count("data.max_prompt_length"), response = p.file.count("data.max_response_length");
  const int64_t most = (prompt + response + p.length_unit - 1) / p.length_unit * p.length_unit;
  p.out.set("policy.max_total_sequence_length", most,
            fmt::format("data.max_prompt_length + data.max_response_length{}",
                        most > prompt + response ? ", made a multiple of what ranks share" : ""));
  p.out.set("policy.generation.max_new_tokens", response, "data.max_response_length");
  p.out.set("data.max_input_seq_length", prompt, "data.max_prompt_length");
  for (const char* same : {"prompt_length", "response_length"}) p.file.value(kRollout + same);
  const std::string buffer = "reward_model.overlong_buffer.";
  if (!p.file.flag(buffer + "enable")) return;
  p.out.set("grpo.reward_shaping.enabled", true, "reward_model.overlong_buffer");
  p.out.set("grpo.reward_shaping.overlong_buffer_length", p.file.count(buffer + "len"));
  p.out.set("grpo.reward_shaping.overlong_buffer_penalty", p.file.number(buffer + "penalty_factor").value_or(1));
  p.out.set("grpo.reward_shaping.max_response_length", response);
  p.file.value(buffer + "log");
}

void translate_validation_sampling(Pass& p) {
  const std::string at = kRollout + "val_kwargs.";
  p.out.set("grpo.val_num_generations_per_prompt", p.file.count(at + "n"), "rollout.val_kwargs.n");
  const bool sample = p.file.flag(at + "do_sample");
  const double there = p.file.number(at + "temperature").value_or(0),
               here = p.file.number(kRollout + "temperature").value_or(1);
  if (!sample || there != here)
    p.out.leave_out(at + "temperature",
                    "validation draws as training does; `hexad eval` on a checkpoint draws at another temperature");
  for (const char* same : {"top_p", "top_k"}) p.file.value(at + same);
}

}  // namespace

void translate_rollout(Pass& p) {
  translate_engine(p);
  translate_lengths(p);
  p.out.put("policy.generation.temperature", p.file.value(kRollout + "temperature"));
  p.out.put("policy.generation.top_p", p.file.value(kRollout + "top_p"));
  if (const auto top_k = p.file.integer(kRollout + "top_k"); top_k && *top_k > 0)
    p.out.set("policy.generation.top_k", *top_k);
  p.out.put("policy.generation.ignore_eos", p.file.value(kRollout + "ignore_eos"));
  translate_validation_sampling(p);
  if (p.file.flag(kRollout + "multi_turn.enable"))
    p.out.leave_out(kRollout + "multi_turn.enable",
                    "turns are those of an environment here, at most grpo.max_rollout_turns (docs/turns.md)");
}

}  // namespace hexad::compat::verl
