// Sizes of batches: verl counts prompts, of which each has rollout.n samples.
#include "compat/verl/pass.hpp"

namespace hexad::compat::verl {
namespace {

// Samples of a micro-batch on a GPU; null where the file says tokens, or nothing.
std::optional<int64_t> micro_batch(Pass& p) {
  const std::string key = kActor + "ppo_micro_batch_size_per_gpu", old = kActor + "ppo_micro_batch_size";
  if (p.file.value(key)) return p.file.count(key);
  if (!p.file.value(old)) return std::nullopt;
  const int64_t all = p.file.count(old);
  if (all % p.gpus != 0) p.file.refuse(old, fmt::format("got {}, wanted a multiple of the {} GPUs", all, p.gpus));
  return all / p.gpus;
}

void translate_micro_batches(Pass& p) {
  const std::optional<int64_t> micro = micro_batch(p);
  const std::string log_prob = kRollout + "log_prob_micro_batch_size_per_gpu";
  const bool by_tokens = p.file.flag(kActor + "use_dynamic_bsz"), packed = p.file.flag(kModel + "use_remove_padding");
  if (micro && !by_tokens) {
    p.out.set("policy.train_micro_batch_size", *micro, "ppo_micro_batch_size_per_gpu");
    if (p.file.value(log_prob)) p.out.set("policy.logprob_batch_size", p.file.count(log_prob));
  } else {
    p.out.set("policy.train_micro_batch_size", int64_t{1});
  }
  for (const char* other :
       {"log_prob_micro_batch_size", "log_prob_use_dynamic_bsz", "log_prob_max_token_len_per_gpu"}) {
    p.file.value(kRollout + other);
    p.file.value(std::string("actor_rollout_ref.ref.") + other);
  }
  p.file.value("actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu");
  if (by_tokens) {
    const int64_t tokens =
        p.file.count(kActor + "ppo_max_token_len_per_gpu") * p.file.count(kActor + "ulysses_sequence_parallel_size");
    p.out.set("policy.sequence_packing.enabled", true, "use_dynamic_bsz");
    p.out.set("policy.sequence_packing.train_mb_tokens", tokens, "ppo_max_token_len_per_gpu of all context ranks");
    p.out.set("policy.sequence_packing.logprob_mb_tokens", tokens);
  } else if (packed) {
    p.out.set("policy.sequence_packing.enabled", true, "use_remove_padding");
  }
}

}  // namespace

void translate_batches(Pass& p) {
  const int64_t prompts = p.file.count("data.train_batch_size"), n = p.file.count(kRollout + "n");
  const int64_t mini = p.file.count(kActor + "ppo_mini_batch_size");
  if (prompts % mini != 0)
    p.file.refuse(
        kActor + "ppo_mini_batch_size",
        fmt::format("got {}, wanted a divisor of data.train_batch_size {}: both count prompts", mini, prompts));
  p.out.set("grpo.num_prompts_per_step", prompts);
  p.out.set("grpo.num_generations_per_prompt", n, "rollout.n");
  p.out.set("policy.train_global_batch_size", mini * n,
            fmt::format("samples: ppo_mini_batch_size {} prompts x rollout.n {}; {} optimizer steps a rollout", mini, n,
                        prompts / mini));
  translate_micro_batches(p);
  if (const int64_t epochs = p.file.count(kActor + "ppo_epochs"); epochs > 1)
    p.out.leave_out(kActor + "ppo_epochs", fmt::format("{}, and here each sample trains once", epochs));
  if (!p.file.flag("algorithm.filter_groups.enable")) return;
  p.out.set("grpo.use_dynamic_sampling", true, "algorithm.filter_groups");
  if (const auto most = p.file.integer("algorithm.filter_groups.max_num_gen_batches"); most && *most > 0)
    p.out.set("grpo.dynamic_sampling_max_gen_batches", *most);
  if (p.file.value("data.gen_batch_size")) {
    const double multiple = static_cast<double>(p.file.count("data.gen_batch_size")) / static_cast<double>(prompts);
    p.out.set("grpo.batch_multiplier", std::max(1.0, multiple), "data.gen_batch_size / data.train_batch_size");
  }
  if (const auto metric = p.file.text("algorithm.filter_groups.metric"); metric && *metric != "acc")
    p.out.leave_out("algorithm.filter_groups.metric", *metric + ": groups are judged by their rewards");
}

}  // namespace hexad::compat::verl
