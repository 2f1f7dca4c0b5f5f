// From prompts to a scored batch, through a generator that samples a model in C.
#include "core/rollout/rollout.hpp"

#include <cmath>

#include "tests/support/borrowed.hpp"
#include "tests/support/toy/program.hpp"
#include "tests/support/toy/workers.hpp"

using namespace hexad;
using namespace hexad::rollout;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

constexpr int32_t kEnd = 2;  // <end> of the quickstart's tokenizer

data::Datum prompt(std::vector<int64_t> ids, const std::string& answer = "a", float loss_multiplier = 1) {
  data::Datum datum;
  datum.token_ids = std::move(ids);
  datum.answer = answer;
  datum.loss_multiplier = loss_multiplier;
  datum.env_name = "exact_answer";
  return datum;
}

Sampling sampling() {
  Sampling sampling;
  sampling.max_new_tokens = 6;
  sampling.max_total_tokens = 16;
  sampling.stop_token_ids = {kEnd};
  return sampling;
}

// A generator, a tokenizer and three prompts.
struct Fixture {
  toy::InProcess workers;
  Generation generation{workers.group};
  ModelText text = load_model_text(toy::source_dir() / "configs/quickstart_model", {});
  hexad::plugin::Registry plugins{{}, nullptr};
  Environments environments = make_environments({}, {"exact_answer", "token_task"}, {plugins});
  std::vector<data::Datum> data = {prompt({1, 4, 3}), prompt({1, 3}, "b", 0), prompt({1, 4, 5, 6, 3}, "c")};

  Rollout run(const Sampling& how, int64_t samples = 40, uint64_t seed = 7, int64_t step = 1) {
    std::vector<data::SharedDatum> prompts;
    for (const data::Datum& datum : data) prompts.push_back(test_support::borrowed(datum));
    return run_rollout(generation, environments, text, prompts, {how, 3, samples, seed, step});
  }
};

std::vector<int64_t> ids(const Rollout& rollout) {
  const auto all = rollout.batch.at("input_ids").span<int64_t>();
  return {all.begin(), all.end()};
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("rows hold prompt and response, masks and log-probs, the samples of a prompt together") {
  Fixture fixture;
  const Rollout rollout = fixture.run(sampling());
  const data::Batch& batch = rollout.batch;
  REQUIRE(batch.size() == 120);
  int64_t ended = 0;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const data::Datum& datum = fixture.data[i / 40];
    CHECK(rollout.prompts[i].get() == &datum);
    const int64_t prompt_length = batch.row<int64_t>("prompt_length", i)[0];
    REQUIRE(prompt_length == static_cast<int64_t>(datum.token_ids.size()));
    const auto tokens = batch.row<int64_t>("input_ids", i);
    CHECK(std::equal(datum.token_ids.begin(), datum.token_ids.end(), tokens.begin()));
    const int64_t generated = batch.length(i) - prompt_length;
    CHECK(generated >= 1);
    CHECK(generated <= 6);
    const auto mask = batch.row<float>("token_mask", i), logprobs = batch.row<float>("generation_logprobs", i);
    std::vector<int32_t> response;
    for (int64_t t = 0; t < batch.length(i); ++t) {
      CHECK(mask[t] == (t < prompt_length ? 0.0f : 1.0f));
      CHECK(logprobs[t] == doctest::Approx(t < prompt_length ? 0.0 : -std::log(12.0)));
      if (t >= prompt_length) response.push_back(static_cast<int32_t>(tokens[t]));
    }
    const bool stopped = response.back() == kEnd;  // the token that ends a response stays in it
    ended += stopped;
    CHECK(std::count(response.begin(), response.end(), kEnd) == stopped);
    CHECK(batch.row<uint8_t>("truncated", i)[0] == !stopped);
    CHECK(generated == (stopped ? generated : 6));
    CHECK(rollout.responses[i] == fixture.text.tokenizer->decode(response, /*skip_special_tokens=*/true));
    CHECK_FALSE(contains(rollout.responses[i], "<end>"));
    CHECK(batch.row<float>("sample_mask", i)[0] == datum.loss_multiplier);
    CHECK(batch.row<float>("rewards", i)[0] == (rollout.responses[i] == datum.answer ? 1.0f : 0.0f));
  }
  CHECK(ended > 20);
  CHECK(ended < 100);
  CHECK(rollout.metrics.at("truncation_rate") == doctest::Approx(1 - ended / 120.0));
  CHECK(rollout.metrics.at("mean_prompt_length") == doctest::Approx(10 / 3.0));
  CHECK(rollout.metrics.at("total_num_tokens") == static_cast<double>(batch.tokens()));
  CHECK(rollout.metrics.at("max_gen_tokens_per_sample") == 6);
}

TEST_CASE("samples are a function of seed, step and row") {
  Fixture fixture;
  const auto first = ids(fixture.run(sampling()));
  CHECK(ids(fixture.run(sampling())) == first);
  CHECK(ids(fixture.run(sampling(), 40, 7, 2)) != first);
  CHECK(ids(fixture.run(sampling(), 40, 8, 1)) != first);
}

TEST_CASE("several workers draw what one draws") {
  Fixture fixture;
  toy::TempDir dir;
  cluster::Spawner spawner;
  cluster::WorkerGroupOptions options;
  options.world_size = 2;
  options.program = toy::hexad();
  options.log_dir = dir.path();
  cluster::WorkerGroup two(&spawner, options);
  toy::start_all(two);
  Generation generation(two);
  std::vector<data::SharedDatum> prompts;
  for (const data::Datum& datum : fixture.data) prompts.push_back(test_support::borrowed(datum));
  const Sampling how = sampling();
  const Rollout rollout = run_rollout(generation, fixture.environments, fixture.text, prompts, {how, 3, 40, 7, 1});
  CHECK(ids(rollout) == ids(fixture.run(sampling())));
  prompts.resize(1);  // fewer groups than workers
  CHECK(run_rollout(generation, fixture.environments, fixture.text, prompts, {how, 1, 3, 7, 1}).batch.size() == 3);
}

TEST_CASE("the context bounds a response, and a prompt without room for one is refused with the numbers") {
  Fixture fixture;
  Sampling how = sampling();
  how.max_total_tokens = 6;
  const Rollout rollout = fixture.run(how);
  for (int64_t i = 0; i < rollout.batch.size(); ++i) CHECK(rollout.batch.length(i) <= 6);
  for (int64_t i = 80; i < 120; ++i) CHECK(rollout.batch.length(i) == 6);  // a prompt of five has room for one
  how.max_total_tokens = 5;
  CHECK(error_of([&] { fixture.run(how); }) ==
        "generate: a prompt of 5 tokens; it needs 1 to 4 to leave room within policy.max_total_sequence_length=5");
}

TEST_CASE("other stop tokens, none, and greedy choice") {
  Fixture fixture;
  Sampling how = sampling();
  how.stop_token_ids = {4, 5};
  const Rollout stops = fixture.run(how);
  for (int64_t i = 0; i < stops.batch.size(); ++i) {
    const int64_t last = stops.batch.row<int64_t>("input_ids", i).back();
    CHECK(stops.batch.row<uint8_t>("truncated", i)[0] == (last != 4 && last != 5));
  }
  how.ignore_eos = true;
  const Rollout never = fixture.run(how);
  for (int64_t i = 0; i < never.batch.size(); ++i)
    CHECK(never.batch.length(i) - never.batch.row<int64_t>("prompt_length", i)[0] == 6);
  CHECK(never.metrics.at("truncation_rate") == 1);
  how.greedy = true;
  const Rollout greedy = fixture.run(how, 2);
  CHECK(greedy.responses[0] == greedy.responses[1]);
}

TEST_CASE("imposed lengths are those of the responses, whatever is sampled") {
  Fixture fixture;
  const std::vector<int64_t> lengths = {3, 1, 6, 5, 2, 4};
  const Rollout rollout = fixture.run(with_imposed_lengths(sampling(), lengths), 2);
  for (int64_t i = 0; i < rollout.batch.size(); ++i)
    CHECK(rollout.batch.length(i) - rollout.batch.row<int64_t>("prompt_length", i)[0] == lengths[i]);
  CHECK(with_imposed_lengths(sampling(), {}).stop_token_ids == sampling().stop_token_ids);
  CHECK(contains(error_of([&] { fixture.run(with_imposed_lengths(sampling(), lengths), 3); }),
                 "imposed_lengths has 6 lengths, and a rollout of 3 prompts x 3 has 9 responses"));
}

TEST_CASE("a batch may need several environments") {
  Fixture fixture;
  fixture.data[2].env_name = "token_task";
  const Rollout rollout = fixture.run(sampling());
  bool partial = false;
  for (int64_t i = 0; i < rollout.batch.size(); ++i) {
    const float reward = rollout.batch.row<float>("rewards", i)[0];
    if (i < 80) CHECK((reward == 0 || reward == 1));
    partial |= reward > 0 && reward < 1;
  }
  CHECK(partial);
}

// Calls every response that is not empty invalid, or with `all` every one.
struct Strict : environment::Environment {
  explicit Strict(bool all) : all(all) {}
  environment::Scores score(std::span<const environment::Sample> samples, int64_t) const override {
    environment::Scores scores;
    for (const environment::Sample& sample : samples) {
      scores.rewards.push_back(0.75f);
      scores.invalid.push_back(all || sample.response != "a");
    }
    scores.components["part"] = scores.rewards;
    scores.why_invalid = "too strict";
    return scores;
  }
  bool all;
};

TEST_CASE("samples without a reward leave the loss and the means; a step without any reward is an error") {
  Fixture fixture;
  fixture.environments["exact_answer"] = std::make_unique<Strict>(false);
  const Rollout rollout = fixture.run(sampling());
  double invalid = 0;
  for (int64_t i = 0; i < rollout.batch.size(); ++i) {
    const bool valid = rollout.responses[i] == "a";
    invalid += !valid;
    CHECK(rollout.batch.row<uint8_t>("invalid", i)[0] == !valid);
    if (!valid) CHECK(rollout.batch.row<float>("sample_mask", i)[0] == 0);
  }
  CHECK(invalid > 0);
  CHECK(invalid < 120);
  CHECK(rollout.metrics.at("num_invalid_samples") == invalid);
  CHECK(rollout.metrics.at("reward/part") == 0.75);
  fixture.environments["exact_answer"] = std::make_unique<Strict>(true);
  CHECK(error_of([&] { fixture.run(sampling(), 40, 7, 5); }) ==
        "rewards: not one of the 120 samples of step 5 could be scored, so that there is nothing to learn from. The "
        "first reason: env.exact_answer: too strict");
}

TEST_CASE("what the configuration says about sampling") {
  config::PolicyConfig policy;
  policy.max_total_sequence_length = 99;
  policy.generation.max_new_tokens = 9;
  policy.generation.temperature = 0.5;
  policy.generation.top_k = 3;
  Sampling how = sampling_from(policy, {2, 7});
  CHECK(how.stop_token_ids == std::vector<int64_t>{2, 7});
  CHECK(how.max_total_tokens == 99);
  CHECK(how.max_new_tokens == 9);
  CHECK(how.temperature == 0.5);
  CHECK(how.top_k == 3);
  policy.generation.stop_token_ids = {5};
  CHECK(sampling_from(policy, {2}).stop_token_ids == std::vector<int64_t>{5});
}

TEST_CASE("generators that gave their weights back draw nothing before a refit") {
  toy::InProcess workers;
  Generation generation(workers.group);
  generation.refit();
  const std::vector<int32_t> tokens = {1, 3};
  const std::vector<Request> requests = {{tokens, 0, 1}};
  generation.sleep(1);
  CHECK_FALSE(generation.stale());
  CHECK(generation.generate(requests, sampling()).size() == 1);
  generation.sleep(2);
  CHECK(generation.stale());
  CHECK(error_of([&] { generation.generate(requests, sampling()); }) ==
        "generate: the generators gave their weights back (sleep level 2); refit them first");
  generation.refit();
  CHECK(generation.generate(requests, sampling()).size() == 1);
}

TEST_CASE("new weights carry their version, and a failed refit is an error of its plugin") {
  toy::InProcess workers("", "refit@4:error");
  Generation generation(workers.group);
  CHECK(generation.stale());
  generation.refit();
  CHECK_FALSE(generation.stale());
  const std::vector<int32_t> tokens = {1, 3};
  const std::vector<Request> requests = {{tokens, 0, 1}};
  CHECK(generation.generate(requests, sampling()).row<int64_t>("weight_version", 0)[0] == 1);
  generation.mark_stale();
  CHECK(generation.stale());
  workers.group.set_step(4);
  CHECK(contains(error_of([&] { generation.refit(); }), "generator 'toy_generator' 1.2.0"));
  CHECK(generation.stale());
}

TEST_SUITE_END();
