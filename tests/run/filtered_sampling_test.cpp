// Training on samples that top_k and top_p chose: log-probs of the policy are of the filtered distribution that samples
// were drawn from, those of the reference of all the vocabulary, and what a filter removes is no infinity.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/run/run_steps.hpp"

using first_party::both;
using toy::TempDir;

namespace {

using Json = nlohmann::json;

std::vector<Json> train(const std::vector<std::string>& overrides) {
  const TempDir dir;
  const auto all = both(first_party::training_alone(), overrides);
  const toy::Ended run = toy::run(first_party::train(first_party::source() + "/configs/quickstart.yaml", dir, all));
  REQUIRE_MESSAGE(run.code == 0, run.err);
  return first_party::steps_of(dir);
}

const std::vector<std::string> kFilters = {"++policy.generation.top_p=0.5", "++policy.generation.top_k=6",
                                           "loss_fn.reference_policy_kl_penalty=0.1", "grpo.max_num_steps=3"};
const std::vector<std::string> kMegatron = {"policy.megatron_cfg.enabled=true",
                                            "++policy.megatron_cfg.tensor_model_parallel_size=2",
                                            "++cluster.gpus_per_node=2"};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("samples that filters chose train, and the first ones are no step away from the reference") {
  for (const auto& backend : {std::vector<std::string>{}, kMegatron}) {
    // One update a rollout: the first one's policy is that of the samples and of the reference.
    const std::vector<Json> steps = train(both(both(kFilters, {"policy.train_global_batch_size=512"}), backend));
    REQUIRE(steps.size() == 3);
    CHECK(std::abs(steps[0].at("train/kl_penalty").get<double>()) < 1e-6);
    CHECK(steps[2].at("train/kl_penalty").get<double>() > 1e-6);
    for (const Json& step : steps) {
      CHECK(std::isfinite(step.at("train/loss").get<double>()));
      CHECK(step.at("train/grad_norm").get<double>() > 0);
      CHECK(step.at("train/token_mult_prob_error").get<double>() == doctest::Approx(1).epsilon(1e-4));
      CHECK(step.at("train/probs_ratio").get<double>() == doctest::Approx(1).epsilon(1e-4));
    }
  }
}

TEST_CASE("several updates of filtered samples stay finite, also where the policy leaves the filter") {
  for (const char* level :
       {"loss_fn.token_level_loss=true", "loss_fn={token_level_loss: false, sequence_level_importance_ratios: true}"}) {
    const std::vector<Json> steps = train(both(kFilters, {level, "policy.optimizer.kwargs.lr=1e-2"}));
    REQUIRE(steps.size() == 3);
    for (const Json& step : steps)
      for (const char* metric : {"train/loss", "train/grad_norm", "train/kl_penalty", "train/probs_ratio",
                                 "train/js_divergence_error", "train/gen_kl_error", "train/approx_entropy"})
        CHECK_MESSAGE(std::isfinite(step.at(metric).get<double>()), metric);
  }
}

TEST_SUITE_END();
