// Several GPUs run one copy of the model: through graphs, cascades, preemption, passes in flight, new weights and
// sleep.
#include "plugins/native/model/weight_sums.hpp"
#include "tests/plugins/native/cuda/gpu_model.hpp"
#include "tests/plugins/native/support/fp8_forward.hpp"
#include "tests/plugins/native/support/fp8_kept.hpp"
#include "tests/plugins/native/support/ranks.hpp"

using namespace native_test;

namespace {

// Eight heads and an MLP that two and four ranks share; a vocabulary of 997 that they do not divide.
constexpr int64_t kWidth = 352;
nlohmann::json sizes(int64_t kv_heads) { return {{"num_attention_heads", 8}, {"num_key_value_heads", kv_heads}}; }

// Of the weights as a trainer has them.
std::map<std::string, int64_t> sums_of(const Weights& weights) {
  return hexad::native::weight_sums(in_dtype(weights, at::kBFloat16));
}

void check_run(const Rank& rank, Harness& generator, const GpuModel& model, const std::vector<Ask>& asks,
               int64_t version) {
  const auto answers = generator.run(asks);
  for (const Ask& ask : asks) {
    const Answer& answer = answers.at(ask.id);
    CHECK(answer.error == "");
    CHECK(answer.finish == HEXAD_FINISH_LENGTH);
    CHECK((answer.spans == std::vector<std::pair<int64_t, int64_t>>{{0, version}}));
  }
  if (rank.rank != 0) return;
  Gap gap;
  compare(model, asks, answers, gap, 7);
  MESSAGE("version ", version, ": ", gap.count, " tokens, largest ", gap.largest, ", error ", gap.mult_prob_error());
  CHECK(gap.mult_prob_error() < 1.02);
  CHECK(gap.largest < 0.15);
}

// Draws with a filter see whole rows of logits: of one token each its log-prob is 0, and it is the greedy draw's.
void check_filtered(Harness& generator, std::vector<Ask> asks) {
  for (Ask& ask : asks) ask.temperature = 0;
  generator->flush_cache(generator.service());
  const auto greedy = generator.run(asks);
  for (Ask& ask : asks) ask.temperature = 1, ask.top_k = 1;
  generator->flush_cache(generator.service());
  const auto filtered = generator.run(asks);
  for (const Ask& ask : asks) {
    CHECK(filtered.at(ask.id).tokens == greedy.at(ask.id).tokens);
    for (const float logprob : filtered.at(ask.id).logprobs) CHECK(std::abs(logprob) < 1e-5);
  }
}

// Rank 0's tokens are checked; that the others draw the same is checked in every pass (Lockstep).
void gpu_draws(const Rank& rank) {
  become(rank);
  for (const auto& [family, head_dim, kv_heads] : std::vector<std::tuple<std::string, int64_t, int64_t>>{
           {"llama", 128, 4}, {"mistral", 64, 2}, {"qwen2", 64, 4}, {"qwen3", 128, 2}}) {
    CAPTURE(family);
    GpuModel model(family, head_dim, kWidth, sizes(kv_heads));
    Harness generator(shared_by(model.section(150, 40, 256), model.config, rank.world), device_of(rank));
    generator.update(model.weights, 1);
    CHECK(reported_sums(generator) == sums_of(model.weights));
    const std::vector<Ask> many = groups(12, 8, 150, 60, 997), few = groups(2, 2, 40, 50, 997);
    check_run(rank, generator, model, many, 1);
    CHECK(generator->preemptions() > 0);
    check_run(rank, generator, model, few, 1);
    check_run(rank, generator, model, few, 1);  // every size has its graph now
    check_filtered(generator, few);
    for (const int32_t level : {1, 2}) {
      generator->sleep(generator.service(), level);
      generator->wake(generator.service());
      for (auto& [name, weight] : model.weights) weight = (weight * 0.9).to(at::kBFloat16).to(at::kFloat);
      generator.update(model.weights, 1 + level);
      CHECK(reported_sums(generator) == sums_of(model.weights));
      check_run(rank, generator, model, many, 1 + level);
    }
  }
  runtime_test::runtime().stop();  // not at exit, when CUDA is on its way out
}

// With so few rows that products have kernels of their own, and one sequence alone.
void check_one_sequence(const Rank& rank) {
  const GpuModel model("llama", 64, kWidth, sizes(4));
  const Json section = model.section(150, 4, 64);
  Harness one(section, device_of(rank)), generator(shared_by(section, model.config, rank.world), device_of(rank));
  one.update(model.weights, 1), generator.update(model.weights, 1);
  for (const uint64_t seed : {1, 2, 3}) {
    Ask ask{.id = seed, .prompt = random_prompt(seed, 30, 997), .max_new_tokens = 1, .group = seed, .seed = seed};
    ask.temperature = 0;
    const Answer want = one.run({ask}).at(seed), got = generator.run({ask}).at(seed);
    CHECK(std::abs(got.logprobs[0] - want.logprobs[0]) < 0.1);
    ask.max_new_tokens = 80;
    check_run(rank, generator, model, {ask}, 1);
  }
}

void gpu_one_sequence(const Rank& rank) {
  become(rank);
  check_one_sequence(rank);
  runtime_test::runtime().stop();
}

// In FP8 each rank casts its columns of o_proj and down_proj, and of what they read.
void check_fp8(const Rank& rank) {
  const GpuModel model("llama", 128, 512, sizes(4));
  Json section = shared_by(model.section(900, 48, 256), model.config, rank.world);
  section["native_cfg"]["precision"] = "fp8";
  Harness generator(section, device_of(rank));
  generator.update(model.weights, 1);
  CHECK(reported_sums(generator) == hexad::native::weight_sums(kept_by(rank.world, model.weights)));
  const std::vector<Ask> asks = groups(6, 8, 150, 60, 997);
  const auto answers = generator.run(asks);
  if (rank.rank == 0) {
    Gap gap, plain;
    const auto lookup = [&](const std::string& name) { return model.weights.at(name); };
    const Fp8Forward same{model.config, lookup, int64_t{1} << 40, /*rounds=*/true, /*fp8_cache=*/false, rank.world};
    for (size_t i = 0; i < asks.size(); i += 5) {
      const Answer& answer = answers.at(asks[i].id);
      REQUIRE(answer.error == "");
      std::vector<int32_t> tokens = asks[i].prompt;
      tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
      const std::vector<float> want = same.logprobs(tokens, at::kCPU);
      for (size_t t = 0; t < answer.tokens.size(); ++t) gap.add(answer.logprobs[t], want[asks[i].prompt.size() + t]);
    }
    compare(model, asks, answers, plain, 5);
    MESSAGE(rank.world, " ranks in FP8: ", gap.count, " tokens, error ", gap.mult_prob_error(), "; without casts ",
            plain.mult_prob_error());
    CHECK(gap.mult_prob_error() - 1 < 0.8 * (plain.mult_prob_error() - 1));
  }
}

// Generators go before the runtime stops: NCCL waits for graphs that hold its communicators.
void gpu_fp8(const Rank& rank) {
  become(rank);
  check_fp8(rank);
  runtime_test::runtime().stop();
}

const bool added = backend_test::add_scenarios(
    {{"gpu_draws", gpu_draws}, {"gpu_one_sequence", gpu_one_sequence}, {"gpu_fp8", gpu_fp8}});

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: GPUs that share a model draw with the full forward's log-probs, also after new weights and sleep") {
  for (const int ranks : {2, 4}) rank_process::run("gpu_draws", ranks);
}

TEST_CASE("native: GPUs that share a model do so for one sequence") {
  for (const int ranks : {2, 4}) rank_process::run("gpu_one_sequence", ranks);
}

TEST_CASE("native: GPUs that share a model in FP8 draw with the log-probs of a forward pass with their casts") {
  for (const int ranks : {2, 4}) rank_process::run("gpu_fp8", ranks);
}

TEST_SUITE_END();
