// What a step tells does not depend on how its samples are dealt out to micro-batches: whole runs with clipped_pg on
// the toy backend. And the likelihood of positive samples, by hand from the samples' log.
#include "core/algorithm/run/train_run.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::Json;

namespace {

using Strings = std::vector<std::string>;

std::vector<Json> lines_of(const std::filesystem::path& file) {
  std::vector<Json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

struct Told {
  Json metrics;  // of the first step
  std::vector<Json> samples;
};

// One step of four updates with all terms of the loss.
Told trained(const Strings& layout) {
  const toy::TempDir dir;
  Strings overrides = {"loss_fn.plugin=clipped_pg",
                       "loss_fn.reference_policy_kl_penalty=0.1",
                       "++loss_fn.positive_example_nll_weight=0.5",
                       "++loss_fn.token_level_loss=false",
                       "++loss_fn.sequence_level_importance_ratios=true",
                       "policy.train_global_batch_size=16",
                       "policy.generation.max_new_tokens=6",
                       "data.train.env_name=token_task",
                       "checkpointing.enabled=false",
                       "grpo.max_num_steps=1"};
  overrides.insert(overrides.end(), layout.begin(), layout.end());
  algorithm::Interruption interruption;
  algorithm::train(config::resolve(dir.write("toy.yaml", toy::config_text(dir.path())), overrides), {}, interruption);
  const auto logs = dir / "logs/exp_001";
  return {lines_of(logs / "metrics.jsonl").at(0), lines_of(logs / "train_data_step1.jsonl")};
}

bool is_of_the_loss(const std::string& name) {
  return name.starts_with("train/") && !name.starts_with("train/memory_");
}

}  // namespace

TEST_CASE("no metric of a step depends on its micro-batches") {
  const Told want = trained({"policy.train_micro_batch_size=16"});
  REQUIRE(want.metrics.at("train/positive_nll_loss") > 0.1);
  REQUIRE(want.metrics.at("train/sampling_importance_ratio") > 0.1);
  const std::vector<Strings> layouts = {
      {"policy.train_micro_batch_size=4"},
      {"policy.train_micro_batch_size=1"},
      {"++policy.sequence_packing.enabled=true", "++policy.sequence_packing.train_mb_tokens=64"},
      {"++policy.dynamic_batching.enabled=true", "++policy.dynamic_batching.train_mb_tokens=64",
       "++policy.dynamic_batching.sequence_length_round=4"}};
  for (const Strings& layout : layouts) {
    const Told got = trained(layout);
    for (const auto& [name, value] : want.metrics.items()) {
      if (!is_of_the_loss(name)) continue;
      INFO(layout[0] << ": " << name);
      CHECK(got.metrics.at(name).get<double>() == doctest::Approx(value.get<double>()).epsilon(1e-4));
    }
  }
}

TEST_CASE("the likelihood of positive samples is a mean over the tokens of the whole global batch, by hand") {
  // One update, so that the policy is that of prev_logprobs; half of the rewards are at most 0.
  const Strings once = {"policy.train_global_batch_size=64", "grpo.reward_scaling.enabled=true",
                        "++grpo.reward_scaling.target_min=-0.25", "++grpo.reward_scaling.target_max=0.75"};
  for (const char* size : {"64", "8"}) {
    Strings layout = once;
    layout.push_back(std::string("policy.train_micro_batch_size=") + size);
    const Told told = trained(layout);
    double sum = 0, tokens = 0;
    int positive = 0;
    for (const Json& sample : told.samples) {
      if (sample.at("rewards").get<double>() <= 0) continue;
      ++positive;
      for (size_t t = 0; t < sample.at("token_loss_mask").size(); ++t) {
        const double mask = sample.at("token_loss_mask")[t];
        sum -= sample.at("prev_logprobs")[t].get<double>() * mask;
        tokens += mask;
      }
    }
    REQUIRE(positive > 0);
    REQUIRE(positive < static_cast<int>(told.samples.size()));
    CHECK(told.metrics.at("train/positive_nll_loss").get<double>() == doctest::Approx(sum / tokens).epsilon(1e-5));
  }
}
