#include "options.hpp"

#include <hexad/services.hpp>

namespace clipped_pg {
namespace {

using hexad::sdk::Config;
using hexad::sdk::fail;

void require(bool holds, const char* text) {
  if (!holds) fail(HEXAD_INVALID_ARGUMENT, "%s", text);
}

// A key whose default is a number and whose null means off.
std::optional<double> clamp_option(const Config& config, const char* key, double otherwise) {
  const auto json = config.json(key);
  if (json && *json == "null") return std::nullopt;
  return config.get(key, otherwise);
}

KlType read_kl_type(const Config& config) {
  const std::string name = config.get("reference_policy_kl_type", "k3");
  if (name == "k1") return KlType::k1;
  if (name == "k2") return KlType::k2;
  if (name == "k3") return KlType::k3;
  fail(HEXAD_INVALID_ARGUMENT, "reference_policy_kl_type must be k1, k2 or k3, got '%s'", name.c_str());
}

void read_truncation(const Config& config, Options& options) {
  const auto type = config.find<std::string>("truncated_importance_sampling_type");
  const auto max = config.find<double>("truncated_importance_sampling_ratio");
  const auto min = config.find<double>("truncated_importance_sampling_ratio_min");
  if (!type) return;
  require(options.importance_correction,
          "truncated_importance_sampling_type needs use_importance_sampling_correction: true");
  require(max && *max > 0, "truncated_importance_sampling_ratio must be positive when a truncation type is set");
  if (*type == "tis") {
    options.truncation = Truncation::tis;
  } else if (*type == "icepop") {
    options.truncation = Truncation::icepop;
  } else if (*type == "seq-mask-tis") {
    options.truncation = Truncation::seq_mask_tis;
  } else {
    fail(HEXAD_INVALID_ARGUMENT, "truncated_importance_sampling_type must be tis, icepop or seq-mask-tis, got '%s'",
         type->c_str());
  }
  require(options.truncation == Truncation::tis || min,
          "truncated_importance_sampling_ratio_min must be set for icepop and seq-mask-tis");
  require(!min || *min <= *max,
          "truncated_importance_sampling_ratio_min must not exceed truncated_importance_sampling_ratio");
  require(options.truncation != Truncation::seq_mask_tis || !options.sequence_ratios,
          "seq-mask-tis works on token-level weights: it cannot be combined with sequence_level_importance_ratios");
  options.truncation_max = *max;
  options.truncation_min = min.value_or(0);
}

void check(const Options& options) {
  require(!options.sequence_ratios || !options.token_level,
          "sequence_level_importance_ratios (GSPO) needs token_level_loss: false");
  if (options.dual_clip && !(*options.dual_clip > 1)) {
    fail(HEXAD_INVALID_ARGUMENT,
         "ratio_clip_c must exceed 1 (it bounds the ratio from above where the advantage is negative), got %g",
         *options.dual_clip);
  }
  if (!options.cispo) return;
  require(!options.reinforce, "use_cispo needs the policy ratio that disable_ppo_ratio removes");
  require(!options.force_on_policy, "use_cispo weighs by the policy ratio, which force_on_policy_ratio sets to 1");
  require(!options.sequence_ratios, "use_cispo works on token-level ratios: not with sequence_level_importance_ratios");
  require(!options.dual_clip, "use_cispo cannot be combined with dual clipping: set ratio_clip_c to null");
  require(options.token_level, "use_cispo needs token_level_loss: true");
}

}  // namespace

Options read_options(const Config& config) {
  Options options;
  options.kl_penalty = config.get("reference_policy_kl_penalty", options.kl_penalty);
  if (config.get("use_kl_in_reward", false)) options.kl_penalty = 0;
  options.kl_type = read_kl_type(config);
  options.kl_input_clamp = clamp_option(config, "kl_input_clamp_value", 20);
  options.kl_output_clamp = clamp_option(config, "kl_output_clamp_value", 10);
  options.on_policy_kl = config.get("use_on_policy_kl_approximation", false);
  options.clip_min = config.get("ratio_clip_min", options.clip_min);
  options.clip_max = config.get("ratio_clip_max", options.clip_max);
  options.dual_clip = config.find<double>("ratio_clip_c");
  options.token_level = config.get("token_level_loss", true);
  options.sequence_ratios = options.sequence_weights = config.get("sequence_level_importance_ratios", false);
  options.reinforce = config.get("disable_ppo_ratio", false);
  options.cispo = config.get("use_cispo", false);
  options.force_on_policy = config.get("force_on_policy_ratio", false);
  options.importance_correction = config.get("use_importance_sampling_correction", false);
  options.positive_nll_weight = config.get("positive_example_nll_weight", 0.0);
  read_truncation(config, options);
  check(options);
  // The ratio of a token is 1, whatever else is asked for; a mean over the sequence would spread its gradient.
  if (options.force_on_policy) options.reinforce = options.sequence_ratios = false;
  return options;
}

}  // namespace clipped_pg
