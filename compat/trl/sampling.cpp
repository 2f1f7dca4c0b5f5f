// How responses are drawn, and the correction for the generator's own log-probs.
#include "compat/trl/pass.hpp"

namespace hexad::compat::trl {
namespace {

constexpr int64_t kPromptLength = 512;  // what TRL took before it left prompts as they are

void translate_lengths(Pass& p) {
  const std::optional<int64_t> response = p.args.integer("max_completion_length");
  const std::optional<int64_t> context = p.args.integer("vllm_max_model_length");
  const std::optional<int64_t> prompt = p.args.integer("max_prompt_length");
  const int64_t longest = prompt ? *prompt : kPromptLength;
  if (response) p.out.set("policy.generation.max_new_tokens", p.args.count("max_completion_length"));
  const int64_t total = context ? p.args.count("vllm_max_model_length") : longest + response.value_or(longest);
  if (total < 1) p.args.refuse("max_prompt_length", fmt::format("got {}, wanted at least 1", longest));
  p.out.set("policy.max_total_sequence_length", total,
            context  ? "vllm_max_model_length"
            : prompt ? "max_prompt_length + max_completion_length"
                     : fmt::format("max_completion_length + {} for the prompt: TRL has no limit of prompts; raise it "
                                   "where they are longer",
                                   kPromptLength));
  if (prompt) p.out.set("data.max_input_seq_length", p.args.count("max_prompt_length"));
}

void translate_sampling_keys(Pass& p) {
  for (const char* key : {"temperature", "top_p", "min_p"})
    p.out.put(std::string("policy.generation.") + key, p.args.value(key));
  if (const auto top_k = p.args.integer("top_k"); top_k && *top_k > 0) p.out.set("policy.generation.top_k", *top_k);
  p.out.put("policy.tokenizer.chat_template_kwargs", p.args.value("chat_template_kwargs"));
}

// Of log-probs of the generator against those of training, as TRL does with vLLM alone.
void translate_correction(Pass& p) {
  const bool wanted = p.args.flag("vllm_importance_sampling_correction");
  const std::string mode = p.args.text("vllm_importance_sampling_mode").value_or("");
  // The name that the upper bound had before.
  const std::string bound = p.args.given("vllm_importance_sampling_cap") ? "vllm_importance_sampling_cap"
                                                                         : "vllm_importance_sampling_clip_max";
  const std::optional<double> high = p.args.number(bound), low = p.args.number("vllm_importance_sampling_clip_min");
  if (!wanted) return;
  if (mode.starts_with("sequence") || !high) {
    p.out.leave_out(high ? "vllm_importance_sampling_mode" : bound,
                    high ? fmt::format("{}: here weights are bounded by token (tis, icepop), or whole sequences left "
                                       "out by the geometric mean of their ratios (seq-mask-tis), where TRL takes the "
                                       "product; written without a correction",
                                       mode)
                         : "no bound: weights are corrected here with an upper bound; written without a correction");
    return;
  }
  p.out.set("loss_fn.use_importance_sampling_correction", true);
  p.out.set("loss_fn.truncated_importance_sampling_type", std::string(mode == "token_mask" ? "icepop" : "tis"));
  p.out.set("loss_fn.truncated_importance_sampling_ratio", *high);
  p.out.set("loss_fn.truncated_importance_sampling_ratio_min", low.value_or(0.0));
}

void translate_vllm(Pass& p) {
  p.out.set("policy.generation.backend", std::string("vllm"), "native is this engine's own");
  const std::string at = "policy.generation.vllm_cfg.";
  p.out.put(at + "gpu_memory_utilization", p.args.value("vllm_gpu_memory_utilization"));
  p.out.put(at + "tensor_parallel_size", p.args.value("vllm_tensor_parallel_size"));
  p.args.value("vllm_model_impl");
  p.args.flag("vllm_enable_sleep_mode");
  if (p.args.text("vllm_mode") == "server")
    p.out.leave_out("vllm_mode",
                    "server: written with servers on the GPUs that train; GPUs of their own are "
                    "policy.generation.colocated (docs/servers.md)");
  translate_correction(p);
}

}  // namespace

void translate_sampling(Pass& p) {
  p.out.set("policy.generation.backend", std::string("native"));
  if (p.args.flag("use_vllm")) translate_vllm(p);
  translate_lengths(p);
  translate_sampling_keys(p);
}

}  // namespace hexad::compat::trl
