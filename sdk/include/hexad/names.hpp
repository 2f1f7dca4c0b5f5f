// The tensors that plugins speak of by name (rule T1): what each is, who brings it, and in runs of which algorithm.
// NAMES.md is the same as a page. A quantity of one's own, which a backend or generator that goes along brings, has a
// name that begins with "x_".
#pragma once
#include <hexad/abi.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hexad::sdk {

enum class Source {
  backend,    // an output that it makes in forward and train, with a gradient
  engine,     // a column of the batch
  generator,  // a column that comes along with its completions
};

struct KnownTensor {
  std::string_view name;
  DLDataType dtype;
  int32_t axis;  // HEXAD_AXIS_TOKEN: [T] or [T, ...], HEXAD_AXIS_SAMPLE: [B]
  Source source;
  std::string_view algorithms;  // "grpo dpo"; "": no algorithm of the engine has it yet
  std::string_view meaning;

  // Whether a run of the algorithm ("grpo", "sft", "dpo", "rm") has it.
  constexpr bool is_of(std::string_view algorithm) const { return algorithms.find(algorithm) != algorithms.npos; }
};

namespace names {

inline constexpr DLDataType kF32 HEXAD_DTYPE_F32, kI64 HEXAD_DTYPE_I64, kU8{kDLUInt, 8, 1}, kI16{kDLInt, 16, 1};
inline constexpr int32_t kToken = HEXAD_AXIS_TOKEN, kSample = HEXAD_AXIS_SAMPLE;
inline constexpr std::string_view kAll = "grpo sft dpo rm";

}  // namespace names

inline constexpr KnownTensor kKnownTensors[] = {
    {"logprobs", names::kF32, names::kToken, Source::backend, "grpo sft dpo",
     "log-probs of the tokens under the weights that train"},
    {"logprobs_unfiltered", names::kF32, names::kToken, Source::backend, "grpo",
     "the same before sampling's filters (top_k, top_p)"},
    {"entropy", names::kF32, names::kToken, Source::backend, "grpo sft dpo",
     "entropy of the distribution that each token is drawn from"},
    {"token_values", names::kF32, names::kToken, Source::backend, "", "what a critic says of each token"},
    {"sequence_scores", names::kF32, names::kSample, Source::backend, "rm", "the score that a reward model gives"},
    {"input_ids", names::kI64, names::kToken, Source::engine, names::kAll, "the tokens"},
    {"token_mask", names::kF32, names::kToken, Source::engine, names::kAll, "1 on tokens that train"},
    {"sample_mask", names::kF32, names::kSample, Source::engine, names::kAll,
     "the sample's weight; 0: it leaves the loss"},
    {"unit_id", names::kI64, names::kSample, Source::engine, "sft dpo rm",
     "rows of one unit (a pair) share it and lie next to each other"},
    {"prev_logprobs", names::kF32, names::kToken, Source::engine, "grpo",
     "log-probs under the policy before the update"},
    {"generation_logprobs", names::kF32, names::kToken, Source::engine, "grpo",
     "log-probs of the distribution that was sampled from; 0 on what the model did not write"},
    {"reference_policy_logprobs", names::kF32, names::kToken, Source::engine, "grpo dpo",
     "log-probs under the reference policy"},
    {"advantages", names::kF32, names::kToken, Source::engine, "grpo", "the advantage of each token"},
    {"rewards", names::kF32, names::kSample, Source::engine, "grpo", "the reward of the sample, shaped"},
    {"global_positive_tokens", names::kF32, names::kSample, Source::engine, "grpo",
     "the same in every row: tokens that train in samples of the global batch whose reward is positive"},
    {"unshaped_rewards", names::kF32, names::kSample, Source::engine, "grpo",
     "the reward before reward_shaping, where that is on"},
    {"truncated", names::kU8, names::kSample, Source::engine, "grpo", "1: the limit of tokens ended the last response"},
    {"invalid", names::kU8, names::kSample, Source::engine, "grpo", "1: the sample could not be scored"},
    {"prompt_length", names::kI64, names::kSample, Source::engine, "grpo", "tokens of the prompt"},
    {"values", names::kF32, names::kToken, Source::engine, "", "token_values when the batch was made"},
    {"returns", names::kF32, names::kToken, Source::engine, "", "what the values of the tokens should have been"},
    {"routed_experts", names::kI16, names::kToken, Source::generator, "grpo",
     "[T, layers with experts, experts a token]: where the router sent the token; -1: it was never run"},
};

constexpr const KnownTensor* known_tensor(std::string_view name) {
  for (const KnownTensor& each : kKnownTensors) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

// Of "held_NAME" the tensor NAME that a backend makes, else null: what a loss takes for NAME where it lets no gradient
// through (rule T6). No run has it.
constexpr const KnownTensor* held_tensor(std::string_view name) {
  const KnownTensor* tensor = name.substr(0, 5) == "held_" ? known_tensor(name.substr(5)) : nullptr;
  return tensor && tensor->source == Source::backend ? tensor : nullptr;
}

// Whether a name is one of a plugin's own.
constexpr bool is_own_name(std::string_view name) { return name.size() > 2 && name.substr(0, 2) == "x_"; }

// The known name that a misspelt one means: a letter too few, too many or other, or an ending; "" if none is near.
constexpr std::string_view nearest_name(std::string_view name) {
  const auto near = [](std::string_view a, std::string_view b) {
    if (a.size() > b.size()) return false;
    if (b.size() - a.size() > 1) return false;
    std::size_t same = 0, behind = 0;
    while (same < a.size() && a[same] == b[same]) ++same;
    while (behind < a.size() - same && a[a.size() - 1 - behind] == b[b.size() - 1 - behind]) ++behind;
    return a.size() - same - behind <= 1;
  };
  for (const KnownTensor& each : kKnownTensors) {
    if (near(name, each.name) || near(each.name, name)) return each.name;
  }
  for (const KnownTensor& each : kKnownTensors) {
    const bool begins = name.size() >= 4 && (each.name.find(name) == 0 || name.find(each.name) == 0);
    if (begins) return each.name;
  }
  return "";
}

// For messages about an unknown name: ", did you mean 'advantages'?" or nothing, then what else it may be.
inline std::string meant_name(std::string_view name) {
  const std::string_view near = nearest_name(name);
  return near.empty() ? "" : ", did you mean '" + std::string(near) + "'?";
}
inline constexpr const char* kOwnNames = " (sdk/NAMES.md lists them; a name of your own begins with x_)";

}  // namespace hexad::sdk
