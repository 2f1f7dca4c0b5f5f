// The batch-invariant mode on a GPU: log-probs of the rollout have the bits of training's forward pass, however both
// are batched.
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "modeling/family/batch_attention.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"
#include "tests/plugins/native/cuda/gpu_model.hpp"

using namespace native_test;
using namespace hexad::modeling;

namespace {

using Texts = std::map<uint64_t, std::vector<int32_t>>;

// Log-probs of every token of the texts: packed in random order into micro-batches of random sizes.
std::map<uint64_t, std::vector<float>> training_logprobs(const ModelConfig& config, const Weights& weights,
                                                         const Texts& texts, double temperature, std::mt19937_64& rng) {
  const c10::InferenceMode inference;
  BlockOptions options;
  options.linear.batch_invariant = true;
  LogprobOptions head;
  head.batch_invariant = true, head.temperature = temperature;
  const auto lookup = [&](const std::string& name) { return weights.at(name); };
  std::vector<uint64_t> order;
  for (const auto& [id, text] : texts) order.push_back(id);
  std::shuffle(order.begin(), order.end(), rng);
  std::map<uint64_t, std::vector<float>> result;
  for (size_t next = 0; next < order.size();) {
    const size_t end = std::min(order.size(), next + 1 + rng() % 9);
    std::vector<int64_t> ids, offsets = {0};
    for (size_t i = next; i < end; ++i) {
      const std::vector<int32_t>& text = texts.at(order[i]);
      ids.insert(ids.end(), text.begin(), text.end());
      offsets.push_back(int64_t(ids.size()));
    }
    const at::Tensor input = at::tensor(ids, at::kLong).to(kGpu), cu_seqlens = at::tensor(offsets, at::kLong);
    const PackedLayout layout = packed_layout(cu_seqlens, kGpu);
    PackedAttention attention(config, layout, AttentionKernel::batch_invariant);
    const at::Tensor hidden = forward_hidden(config, lookup, input, layout.positions, attention, options);
    const at::Tensor targets = next_token_targets(input, cu_seqlens);
    const at::Tensor logprobs =
        at_predicted_token(head_logprobs(hidden, lookup(head_weight_name(config)), targets, head).logprobs).cpu();
    const float* data = logprobs.const_data_ptr<float>();
    for (size_t i = next; i < end; ++i) result[order[i]] = {data + offsets[i - next], data + offsets[i - next + 1]};
    next = end;
  }
  return result;
}

struct Sizes {
  int64_t blocks, running, rows;  // of the generator
  double temperature = 1;
};

std::map<uint64_t, Answer> generate(const GpuModel& model, const std::vector<Ask>& asks, const Sizes& run,
                                    int64_t* preemptions = nullptr) {
  Json section = model.section(run.blocks, run.running, run.rows);
  section["batch_invariant"] = true;
  Harness generator(section, kGpu);
  generator.update(model.weights, 1);
  auto answers = generator.run(asks);
  if (preemptions) *preemptions = generator->preemptions();
  return answers;
}

void check_bits(const GpuModel& model, std::vector<Ask> asks, const Sizes& run) {
  for (Ask& ask : asks) ask.temperature = run.temperature;
  int64_t preemptions = 0;
  const auto answers = generate(model, asks, run, &preemptions);
  Texts texts;
  for (const Ask& ask : asks) {
    const Answer& answer = answers.at(ask.id);
    REQUIRE(answer.error == "");
    std::vector<int32_t>& text = texts[ask.id] = ask.prompt;
    text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
  }
  std::mt19937_64 rng(21);
  const auto want = training_logprobs(model.config, model.on_gpu(), texts, run.temperature, rng);
  Gap gap;
  for (const Ask& ask : asks) {
    const Answer& answer = answers.at(ask.id);
    for (size_t t = 0; t < answer.tokens.size(); ++t)
      gap.add(answer.logprobs[t], want.at(ask.id)[ask.prompt.size() + t]);
  }
  MESSAGE(gap.count, " tokens, ", preemptions, " preemptions, largest ", gap.largest, ", token_mult_prob_error ",
          gap.mult_prob_error());
  CHECK(gap.count > 300);
  CHECK(gap.largest == 0);
  CHECK(gap.mult_prob_error() == 1.0);
}

const nlohmann::json kEven = {{"vocab_size", 1000}};

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: batch-invariant rollouts have training's bits, in chunks, groups, graphs and after preemption") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      CAPTURE(family);
      CAPTURE(head_dim);
      const GpuModel model(family, head_dim, 328, kEven);
      check_bits(model, groups(8, 6, 150, 60, 997), {150, 40, 96});
      check_bits(model, groups(5, 3, 40, 30, 997), {400, 7, 512, 0.7});
    }
  }
}

TEST_CASE("native: a batch-invariant rollout does not depend on what runs beside it") {
  const GpuModel model("qwen3", 128, 328, kEven);
  const std::vector<Ask> asks = groups(6, 4, 90, 50, 997);
  const auto together = generate(model, asks, {400, 40, 512}), narrow = generate(model, asks, {400, 3, 32});
  for (const Ask& ask : asks) {
    CHECK(bool(together.at(ask.id) == narrow.at(ask.id)));
    if (ask.id % 6 == 0) CHECK(bool(generate(model, {ask}, {400, 1, 64}).at(ask.id) == together.at(ask.id)));
  }
}

TEST_CASE("native: a medium model's batch-invariant rollouts have training's bits") {
  for (const std::string family : {"qwen2", "qwen3"}) {
    CAPTURE(family);
    const GpuModel model(family, 128, 3072,
                         {{"vocab_size", 32000},
                          {"hidden_size", 1024},
                          {"intermediate_size", 3072},
                          {"num_attention_heads", 16},
                          {"num_key_value_heads", 8},
                          {"initializer_range", 0.02}});
    check_bits(model, groups(24, 8, 300, 200, 32000), {6000, 150, 2048});
  }
}

TEST_SUITE_END();
