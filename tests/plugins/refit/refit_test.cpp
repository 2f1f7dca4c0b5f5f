// A backend trains and sends its weights to the generator of the same process: what that draws has the log-probs that
// the backend computes, for the new weights and not for the old ones; in fp32, and in bf16 within its rounding.
#include "tests/plugins/refit/generator.hpp"

#include "tests/plugins/backend/divisible_model.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using refit_test::Drawn;
using refit_test::Generator;
using refit_test::Sample;

const char* backend_test::plugin_name() { return "dtensor"; }

namespace {

constexpr double kTemperature = 0.8;
constexpr int64_t kNewTokens = 20;
constexpr size_t kSamples = 12;

json model_of(const std::string& family) {
  return has_experts(family) ? expert_model(family) : divisible_model(family);
}

json policy_of(const std::string& plugin, const std::filesystem::path& model, const std::string& precision) {
  json result = policy(model, precision);
  result.erase("dtensor_cfg");
  result[plugin + "_cfg"] = json::object();
  return result;
}

json generation(const std::filesystem::path& model, const std::string& precision) {
  return {{"model_name", model.string()},
          {"precision", precision},
          {"max_total_sequence_length", 64},
          {"native_cfg", {{"kv_cache_gb", 0.001}, {"kv_block_size", 4}, {"max_num_batched_tokens", 13}}}};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const Sequence& sequence : make_sequences(kSamples, 3)) result.push_back({sequence.ids, result.size()});
  return result;
}

void train_step(Instance& backend, int step) {
  auto batches = backend.batches(make_sequences(8, step), {4, false, false});
  backend.train(batches, 50, kTemperature);
  CHECK_FALSE(backend.step(3e-2, 0, 1).skipped);
}

struct Gap {
  double largest = 0, sum_of_ratios = 0;
  int64_t count = 0;
  double mult_prob_error() const { return sum_of_ratios / static_cast<double>(count); }
};

// Of the drawn tokens, against the backend's log-probs of the whole sequences.
Gap gap_of(Instance& backend, const std::vector<Drawn>& drawn) {
  std::vector<Sequence> sequences;
  const std::vector<Sample> asked = samples();
  for (size_t i = 0; i < drawn.size(); ++i) {
    Sequence sequence{asked[i].prompt, {}};
    sequence.ids.insert(sequence.ids.end(), drawn[i].tokens.begin(), drawn[i].tokens.end());
    sequences.push_back(sequence);
  }
  auto batches = backend.batches(sequences, {4, false, false});
  const at::Tensor all = at::cat(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kTemperature));
  Gap gap;
  int64_t begin = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const int64_t prompt = static_cast<int64_t>(asked[i].prompt.size());
    for (size_t t = 0; t < drawn[i].tokens.size(); ++t) {
      const double want = all[begin + prompt + static_cast<int64_t>(t)].item<float>();
      const double difference = std::abs(drawn[i].logprobs[t] - want);
      gap.largest = worse(gap.largest, difference);
      gap.sum_of_ratios += std::exp(difference), ++gap.count;
    }
    begin += static_cast<int64_t>(sequences[i].ids.size());
  }
  CHECK(gap.count == static_cast<int64_t>(kSamples) * kNewTokens);
  return gap;
}

// A backend and a generator of one model directory.
struct Pair {
  std::string plugin;
  TemporaryDir dir;
  std::optional<Instance> backend;
  std::optional<Generator> generator;

  Pair(const std::string& of, const std::string& family, const std::string& precision) : plugin(of) {
    one_rank();
    write_model(dir.path(), model_of(family));
    backend.emplace(policy_of(plugin, dir.path(), precision), plugin);
    REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
    generator.emplace(generation(dir.path(), precision));
  }
  void refit(int64_t version, int64_t bucket_bytes = 4096) {
    generator->refit(*backend, vtable_of(plugin), version, bucket_bytes);
  }
  // What the generator draws now, all of it under this version.
  std::vector<Drawn> draw(int64_t version) {
    const std::vector<Drawn> drawn = generator->run(samples(), kNewTokens, kTemperature);
    for (const Drawn& one : drawn) CHECK(one.versions == std::vector<int64_t>{version});
    return drawn;
  }
};

}  // namespace

TEST_CASE("what a generator draws has the backend's log-probs, before and after a refit") {
  for (const std::string plugin : {"dtensor", "megatron"}) {
    for (const std::string family : {"llama", "qwen3", "qwen2", "mistral", "qwen3_moe", "mixtral"}) {
      CAPTURE(plugin);
      CAPTURE(family);
      Pair pair(plugin, family, "float32");
      CHECK(gap_of(*pair.backend, pair.draw(0)).largest < 2e-5);
      train_step(*pair.backend, 1);
      CHECK(gap_of(*pair.backend, pair.draw(0)).largest > 1e-3);  // the old weights'
      pair.refit(1);
      const auto drawn = pair.draw(1);
      CHECK(gap_of(*pair.backend, drawn).largest < 2e-5);
      // After it gave its memory back, in one bucket: the same.
      pair.generator->sleep_and_wake();
      pair.refit(2, 1 << 30);
      const auto again = pair.draw(2);
      CHECK(gap_of(*pair.backend, again).largest < 2e-5);
      for (size_t i = 0; i < drawn.size(); ++i) CHECK(again[i].tokens == drawn[i].tokens);
    }
  }
}

TEST_CASE("in bf16 they are the backend's within its rounding") {
  for (const std::string plugin : {"dtensor", "megatron"}) {
    CAPTURE(plugin);
    Pair pair(plugin, "qwen3", "bfloat16");
    train_step(*pair.backend, 1);
    pair.refit(1);
    const Gap gap = gap_of(*pair.backend, pair.draw(1));
    MESSAGE(plugin << ": largest " << gap.largest << ", token_mult_prob_error " << gap.mult_prob_error());
    CHECK(gap.mult_prob_error() < 1.02);
    CHECK(gap.largest > 1e-5);  // it did compute in bf16
  }
}
