// The policy over a backend in C: the same numbers under every layout of micro-batches, and steps that must be skipped.
#include "core/cluster/policy.hpp"
#include "core/cluster/policy_mismatch.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "tests/support/toy/workers.hpp"

using namespace hexad;
using cluster::Policy;
using cluster::TrainResult;
using cluster::Weights;

namespace {

// `rows` sequences of 2 to 9 tokens with random advantages, as a rollout leaves them.
data::Batch rollout(int64_t rows) {
  std::mt19937 random(5);
  std::vector<int64_t> lengths, ids;
  std::vector<float> advantages, token_mask, sample_mask;
  for (int64_t i = 0; i < rows; ++i) {
    lengths.push_back(2 + static_cast<int64_t>(random() % 8));
    sample_mask.push_back(i % 5 == 3 ? 0.0f : 1.0f);
    for (int64_t t = 0; t < lengths.back(); ++t) {
      ids.push_back(static_cast<int64_t>(random() % 12));
      token_mask.push_back(t > 0 ? sample_mask.back() : 0.0f);
      advantages.push_back(static_cast<float>(random() % 100) / 50 - 1);
    }
  }
  data::Batch batch = data::Batch::of_lengths(lengths);
  batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  batch.set("token_mask", data::Tensor::of(token_mask), data::Axis::token);
  batch.set("advantages", data::Tensor::of(advantages), data::Axis::token);
  batch.set("sample_mask", data::Tensor::of(sample_mask), data::Axis::sample);
  return batch;
}

config::PolicyConfig plain() {
  config::PolicyConfig config;
  config.train_global_batch_size = 12;
  config.train_micro_batch_size = 4;
  config.logprob_batch_size = 4;
  return config;
}
config::PolicyConfig packed() {
  config::PolicyConfig config = plain();
  config.sequence_packing.enabled = true;
  config.sequence_packing.train_mb_tokens = config.sequence_packing.logprob_mb_tokens = 20;
  return config;
}
config::PolicyConfig dynamic() {
  config::PolicyConfig config = plain();
  config.dynamic_batching.enabled = true;
  config.dynamic_batching.sequence_length_round = 4;
  config.dynamic_batching.train_mb_tokens = config.dynamic_batching.logprob_mb_tokens = 40;
  return config;
}

// Log-probs, a step, and the log-probs after it.
struct Outcome {
  std::vector<float> before, after;
  TrainResult trained;
};
std::vector<float> values(const data::Tensor& tensor) {
  const auto span = tensor.span<float>();
  return {span.begin(), span.end()};
}
Outcome outcome(const config::PolicyConfig& config, data::Batch batch) {
  toy::InProcess workers;
  Policy policy(workers.group, config, workers.started);
  Outcome outcome;
  const data::Tensor before = policy.logprobs(batch, Weights::current);
  batch.set("prev_logprobs", before, data::Axis::token);
  outcome.before = values(before);
  outcome.trained = policy.train(batch, 3.0, std::nan(""));
  outcome.after = values(policy.logprobs(batch, Weights::current));
  return outcome;
}

void check_close(const std::vector<float>& got, const std::vector<float>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("log-probs, losses, gradients and updates do not depend on the layout") {
  const data::Batch batch = rollout(24);  // two optimizer steps
  const Outcome wanted = outcome(plain(), batch);
  CHECK(wanted.trained.optimizer_steps == 2);
  CHECK(wanted.trained.skipped_steps == 0);
  CHECK(wanted.trained.grad_norm > 0);
  CHECK(wanted.after != wanted.before);
  for (const auto& config : {packed(), dynamic()}) {
    const Outcome got = outcome(config, batch);
    check_close(got.before, wanted.before);
    check_close(got.after, wanted.after);
    CHECK(got.trained.grad_norm == doctest::Approx(wanted.trained.grad_norm));
    CHECK(got.trained.metrics.at("loss") == doctest::Approx(wanted.trained.metrics.at("loss")));
    CHECK(got.trained.metrics.at("global_valid_toks") == wanted.trained.metrics.at("global_valid_toks"));
    CHECK(got.trained.metrics.at("clip_frac") == doctest::Approx(wanted.trained.metrics.at("clip_frac")));
  }
}

TEST_CASE("a loss that is not trained on does not depend on how its rows are cut into batches") {
  toy::InProcess workers;
  for (const auto& config : {plain(), packed(), dynamic()}) {
    Policy policy(workers.group, config, workers.started);
    data::Batch batch = rollout(10);
    batch.set("prev_logprobs", policy.logprobs(batch, Weights::current), data::Axis::token);
    const std::vector<data::Batch> whole = {batch}, parts = {batch.slice(0, 4), batch.slice(4, 8), batch.slice(8, 10)};
    int completed = 0;
    const auto complete = [&](data::Batch&) { ++completed; };
    const auto wanted = policy.evaluate(whole, 3, complete), got = policy.evaluate(parts, 3, complete);
    CHECK(completed == 4);
    REQUIRE(got.size() == wanted.size());
    for (const auto& [name, value] : wanted) CHECK_MESSAGE(got.at(name) == doctest::Approx(value), name);
    CHECK(wanted.at("loss") != 0);
    CHECK(wanted.at("global_valid_seqs") == 8);
  }
}

TEST_CASE("rows that do not divide over the ranks are not packed") {
  toy::InProcess workers;
  workers.started[0].backend->dp_size = 2;  // of which this is the first
  Policy policy(workers.group, packed(), workers.started);
  CHECK_NOTHROW(policy.logprobs(rollout(9), Weights::current));
}

TEST_CASE("how far policies are apart, of one token") {
  // By hand: e^1, e^1 - 2, e^-1, and of the middle m = log((e^-1 + e^-2) / 2) the mean of k3(-1 - m) and k3(-2 - m).
  const cluster::Mismatch got = cluster::mismatch_of({.current = -1, .previous = -1, .generation = -2});
  const double wanted[] = {2.718281828459, 0.718281828459, 0.367879441171, 0.120114506958, 2.718281828459};
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-11));
  const cluster::Mismatch equal = cluster::mismatch_of({-0.5, -0.5, -0.5});
  CHECK(equal[0] == 1);
  for (size_t i = 1; i < 4; ++i) CHECK(equal[i] == doctest::Approx(0).epsilon(1e-15));
  CHECK(equal[4] == 0.5);
}

TEST_CASE("a loss that does not tell how far policies are apart has it told, whatever the layout") {
  data::Batch batch = rollout(12);
  std::vector<float> generation;
  for (int64_t t = 0; t < batch.tokens(); ++t) generation.push_back(-0.5f - static_cast<float>(t % 7) / 3);
  batch.set("generation_logprobs", data::Tensor::of(generation), data::Axis::token);
  for (const auto& config : {plain(), packed(), dynamic()}) {
    const Outcome got = outcome(config, batch);
    double tokens = 0;
    cluster::Mismatch wanted = {};
    for (int64_t row = 0; row < batch.size(); ++row) {
      const float sample = batch.row<float>("sample_mask", row)[0];
      for (int64_t t = batch.cu_seqlens()[row] + 1; t < batch.cu_seqlens()[row + 1]; ++t) {
        const auto at = static_cast<size_t>(t);
        const double policy = got.before[at];  // both: the loss uses those before the step
        const cluster::Mismatch parts = cluster::mismatch_of({policy, policy, generation[at]});
        tokens += sample;
        for (size_t i = 0; i < parts.size(); ++i) wanted[i] += sample * parts[i];
      }
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      INFO(cluster::kMismatchMetrics[i]);
      CHECK(got.trained.metrics.at(cluster::kMismatchMetrics[i]) == doctest::Approx(wanted[i] / tokens).epsilon(1e-5));
    }
  }
  // Without a rollout there is no generator to be apart from.
  CHECK_FALSE(outcome(plain(), rollout(12)).trained.metrics.contains("gen_kl_error"));
}

TEST_CASE("the micro-batches of a training step are filled up to the multiple that the backend asks for") {
  const plugin_test::PluginFolder folder;
  const auto trained = [&](int64_t multiple) {
    const auto trace = folder.path() / fmt::format("trace{}", multiple);
    auto start = toy::start_command();
    start.policy["plugin_config"]["trace"] = trace.string();
    toy::InProcess workers(start);
    workers.started[0].backend->micro_batch_multiple = multiple;
    Policy policy(workers.group, plain(), workers.started);
    data::Batch batch = rollout(12);
    batch.set("prev_logprobs", policy.logprobs(batch, Weights::current), data::Axis::token);
    const double norm = policy.train(batch, 3.0, std::nan("")).grad_norm;
    std::vector<std::string> lines;
    std::ifstream file(trace);
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("train: ")) lines.push_back(line);
    return std::pair(lines, norm);
  };
  const auto [wanted, wanted_norm] = trained(1);
  REQUIRE(wanted.size() == 3);
  auto [lines, norm] = trained(2);
  REQUIRE(lines.size() == 4);
  CHECK(lines.back().starts_with("train: 0 sequences, 0 tokens"));
  lines.pop_back();
  CHECK(lines == wanted);
  CHECK(norm == wanted_norm);
}

TEST_CASE("log-probs of any number of rows") {
  toy::InProcess workers;
  for (const auto& config : {plain(), packed(), dynamic()}) {
    Policy policy(workers.group, config, workers.started);
    for (const int64_t rows : {1, 3, 7}) {
      const data::Batch batch = rollout(rows);
      const auto logprobs = values(policy.logprobs(batch, Weights::current));
      REQUIRE(static_cast<int64_t>(logprobs.size()) == batch.tokens());
      CHECK(logprobs[0] == 0);
      CHECK(logprobs[1] == doctest::Approx(-std::log(12.0)));
    }
  }
}

TEST_CASE("log-probs are after sampling's filters, or before them where these are asked for") {
  cluster::protocol::Start start = toy::start_command();
  data::Batch batch = rollout(12);
  std::vector<std::vector<float>> before, after;
  for (const int64_t top_k : {0, 3}) {
    start.transform.top_k = top_k;
    toy::InProcess workers(start);
    Policy policy(workers.group, plain(), workers.started);
    batch.set("prev_logprobs", policy.logprobs(batch, Weights::current, cluster::Filters::none), data::Axis::token);
    policy.keep(Weights::reference);
    policy.train(batch, 3.0, std::nan(""));  // tokens are no longer equally likely
    before.push_back(values(policy.logprobs(batch, Weights::current, cluster::Filters::none)));
    after.push_back(values(policy.logprobs(batch, Weights::current)));
    CHECK(values(policy.logprobs(batch, Weights::reference)) == values(batch.at("prev_logprobs")));
  }
  CHECK(before[1] == before[0]);
  CHECK(after[0] == before[0]);
  const auto removed = std::ranges::count(after[1], -INFINITY);
  CHECK(removed > 0);
  CHECK(removed < batch.tokens());
  bool grew = false;
  for (size_t i = 0; i < after[1].size(); ++i) {
    if (!std::isfinite(after[1][i])) continue;
    CHECK(after[1][i] >= before[1][i]);  // what is removed goes to those that stay
    grew |= after[1][i] > before[1][i] + 1e-3F;
  }
  CHECK(grew);
}

TEST_CASE("a loss that is not finite changes nothing, and is counted") {
  data::Batch batch = rollout(12);
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    batch.at("advantages").span<float>()[1] = value;
    const Outcome got = outcome(plain(), batch);
    CHECK(got.trained.skipped_steps == 1);
    CHECK(got.trained.optimizer_steps == 0);
    CHECK(std::isnan(got.trained.grad_norm));
    CHECK(got.after == got.before);
  }
}

TEST_CASE("a gradient that is not finite is skipped, and the next step works") {
  toy::InProcess workers("train@1:nan");
  Policy policy(workers.group, plain(), workers.started);
  data::Batch batch = rollout(12);
  const data::Tensor before = policy.logprobs(batch, Weights::current);
  batch.set("prev_logprobs", before, data::Axis::token);
  policy.begin_step(1);
  CHECK(policy.train(batch, 3.0, std::nan("")).skipped_steps == 1);
  CHECK(values(policy.logprobs(batch, Weights::current)) == values(before));
  policy.begin_step(2);
  CHECK(policy.train(batch, 3.0, std::nan("")).optimizer_steps == 1);
  CHECK(values(policy.logprobs(batch, Weights::current)) != values(before));
}

TEST_CASE("a kept copy stays as it was, and a checkpoint brings weights back") {
  const toy::TempDir dir;
  toy::InProcess workers;
  Policy policy(workers.group, plain(), workers.started);
  data::Batch batch = rollout(12);
  const auto initial = values(policy.logprobs(batch, Weights::current));
  batch.set("prev_logprobs", policy.logprobs(batch, Weights::current), data::Axis::token);
  policy.keep(Weights::reference);
  policy.train(batch, 3.0, std::nan(""));
  const auto trained = values(policy.logprobs(batch, Weights::current));
  CHECK(values(policy.logprobs(batch, Weights::reference)) == initial);
  policy.save(dir.path(), "");
  policy.train(batch, 3.0, std::nan(""));
  CHECK(values(policy.logprobs(batch, Weights::current)) != trained);
  policy.load(dir.path(), "");
  CHECK(values(policy.logprobs(batch, Weights::current)) == trained);
}
