// The metrics of the quickstart's first step, with all terms of the loss, on one rank and on two, packed and padded.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/run/run_steps.hpp"

using first_party::both;
using toy::TempDir;

namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

// Whether one ratio and one importance weight serve a sequence.
Json first_step(bool by_sequence, const Strings& layout) {
  const TempDir dir;
  const Strings loss = {"loss_fn.reference_policy_kl_penalty=0.1",
                        "++loss_fn.positive_example_nll_weight=0.5",
                        fmt::format("loss_fn.token_level_loss={}", !by_sequence),
                        fmt::format("++loss_fn.sequence_level_importance_ratios={}", by_sequence),
                        "++policy.generation.temperature=1.3",
                        "grpo.max_num_steps=1"};
  const toy::Ended run = toy::run(first_party::train(first_party::source() + "/configs/quickstart.yaml", dir,
                                                     both(both(first_party::training_alone(), loss), layout)));
  REQUIRE_MESSAGE(run.code == 0, run.err);
  return first_party::steps_of(dir).at(0);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("no metric of the loss depends on micro-batches, packing or ranks") {
  const std::string padded = "policy.sequence_packing.enabled=false", two = "cluster.gpus_per_node=2";
  for (const bool by_sequence : {false, true}) {
    const Json want = first_step(by_sequence, {});
    CHECK(want.at("train/positive_nll_loss").get<double>() > 0.1);
    for (const Strings& layout : std::vector<Strings>{{"policy.sequence_packing.train_mb_tokens=64"},
                                                      {padded, "policy.train_micro_batch_size=8"},
                                                      {two},
                                                      {two, padded, "policy.train_micro_batch_size=4"}}) {
      const Json got = first_step(by_sequence, layout);
      for (const char* metric :
           {"loss", "grad_norm", "kl_penalty", "positive_nll_loss", "sampling_importance_ratio", "probs_ratio",
            "probs_ratio_min", "probs_ratio_max", "probs_ratio_clamped", "token_mult_prob_error", "gen_kl_error",
            "policy_kl_error", "js_divergence_error", "approx_entropy", "num_valid_samples", "global_valid_toks"}) {
        const std::string name = std::string("train/") + metric;
        INFO(layout.back() << ", by sequence " << by_sequence << ": " << name);
        CHECK(got.at(name).get<double>() == doctest::Approx(want.at(name).get<double>()).epsilon(2e-4));
      }
    }
  }
}

TEST_SUITE_END();
