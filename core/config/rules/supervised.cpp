// sft, dpo, rm: what NeMo-RL's setup functions and its batches ask for.
#include "core/config/rules/rules.hpp"

namespace hexad::config {
namespace {

// One block names the algorithm.
void check_one_algorithm(RuleContext& c) {
  const std::vector<Algorithm> found = algorithm_blocks(c.root());
  for (size_t i = 1; i < found.size(); ++i)
    c.error(name_of(found[i]), fmt::format("{} is there too, and a run is of one algorithm: leave one of the blocks "
                                           "out, or set it to null",
                                           name_of(found[0])));
}

// A micro-batch size divides what one rank holds, unless micro-batches are formed by tokens.
void check_example_sizes(RuleContext& c) {
  const std::string key = "policy.train_global_batch_size", micro_key = "policy.train_micro_batch_size";
  const char* examples = has_pairs(c.algorithm()) ? "pairs" : "conversations";
  const std::optional<int64_t> global = c.integer(key), ranks = c.data_parallel_size(), micro = c.integer(micro_key);
  if (!global || !ranks || *global < 1) return;
  if (*global % *ranks != 0) {
    c.error(key, fmt::format("got {}, wanted a multiple of the {} data-parallel ranks", *global, *ranks));
    return;
  }
  if (c.flag("policy.sequence_packing.enabled") || c.flag("policy.dynamic_batching.enabled")) return;
  const int64_t share = *global / *ranks;
  if (!micro || *micro < 1 || share % *micro == 0) return;
  c.error(micro_key, fmt::format("got {}, which does not divide the {} {} of a rank (policy.train_global_batch_size {} "
                                 "over {} data-parallel ranks)",
                                 *micro, share, examples, *global, *ranks));
}

// Whatever says how rows become examples: one dataset's key, data.default's or that of NeMo-RL 0.3.
void check_processors(RuleContext& c) {
  const bool samples = c.algorithm() == Algorithm::grpo;
  const std::string wanted = has_pairs(c.algorithm()) ? "preference_processor" : "sft_processor";
  const auto check = [&](const std::string& path, const yaml::Node* node) {
    const yaml::Node* processor = node && node->is_map() ? node->child("processor") : nullptr;
    if (!processor || !processor->is_string()) return;
    const std::string& name = processor->as_string();
    const bool of_examples = name == "sft_processor" || name == "preference_processor";
    if (samples ? !of_examples : name == wanted) return;
    c.error(path + ".processor",
            fmt::format("got '{}', wanted {} with {}", name,
                        samples ? "one that makes prompts (math_hf_data_processor)" : wanted, c.block()));
  };
  for (const char* path : {"data", "data.default", "data.train", "data.validation"}) {
    const yaml::Node* node = c.root().find(path);
    check(path, node);
    if (!node || !node->is_list()) continue;
    for (size_t i = 0; i < node->items().size(); ++i) check(fmt::format("{}.{}", path, i), &node->items()[i]);
  }
}

void check_reward_model(RuleContext& c) {
  const std::string key = "policy.reward_model_cfg.enabled";
  const yaml::Node* enabled = c.root().find(key);
  const bool trains = c.algorithm() == Algorithm::rm;
  if (!enabled || !enabled->is_bool() || enabled->as_bool() == trains) return;
  c.error(key, trains ? "got false, and rm trains a reward model; wanted true, or nothing"
                      : fmt::format("got true: a reward model is trained by a block rm, and the configuration has {}",
                                    c.block()));
}

void check_notices(RuleContext& c) {
  const yaml::Node* generation = c.root().find("policy.generation.temperature");
  if (generation && generation->is_number() && generation->as_double() != 1)
    c.notice("policy.generation.temperature", fmt::format("no effect: {} samples nothing", c.block()));
}

}  // namespace

void check_supervised_rules(RuleContext& c) {
  check_one_algorithm(c);
  check_reward_model(c);
  check_processors(c);
  if (c.algorithm() == Algorithm::grpo) {
    for (const char* key : {"data.add_bos", "data.add_eos", "data.add_generation_prompt"})
      if (c.root().find(key)) c.notice(key, "no effect: the chat template says where a prompt's special tokens go");
    return;
  }
  check_example_sizes(c);
  check_notices(c);
}

}  // namespace hexad::config
