// The `loss_fn` section of a policy-gradient run, under NeMo-RL's names and defaults.
#pragma once
#include <optional>

namespace hexad::sdk {
class Config;
}

namespace clipped_pg {

enum class KlType { k1, k2, k3 };
enum class Truncation { none, tis, icepop, seq_mask_tis };

struct Options {
  double kl_penalty = 0.01;  // beta; 0 if the KL is in the reward
  KlType kl_type = KlType::k3;
  std::optional<double> kl_input_clamp;   // bound of |log-ratio|
  std::optional<double> kl_output_clamp;  // bound of |weighted KL|
  bool on_policy_kl = false;              // weight exp(current - generation) in place of exp(current - sg(current))

  double clip_min = 0.2, clip_max = 0.2;  // the ratio is clamped to [1 - min, 1 + max]
  std::optional<double> dual_clip;        // > 1
  bool token_level = true;                // false: mean over sequences of means over tokens
  bool sequence_ratios = false;           // GSPO: one ratio a sequence
  bool sequence_weights = false;          // and one importance weight
  bool reinforce = false;                 // disable_ppo_ratio: the "ratio" is the log-prob itself
  bool cispo = false;
  bool force_on_policy = false;  // the previous policy is the current one, and each token has a ratio of its own, 1

  bool importance_correction = false;  // multiply by exp(prev - generation)
  Truncation truncation = Truncation::none;
  double truncation_max = 0;
  double truncation_min = 0;

  double positive_nll_weight = 0;  // VAPO's mu
};

// Reads and checks the section. Combinations that NeMo-RL refuses throw INVALID_ARGUMENT with a text.
Options read_options(const hexad::sdk::Config& config);

}  // namespace clipped_pg
