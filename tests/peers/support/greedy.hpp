// What the tests of real servers share: a model that they take, and what the native generator and our own forward say.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/peers/support/interpreter.hpp"
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/reference.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"
#include "tests/plugins/server_bridge/support/harness.hpp"

namespace peers_test {

using bridge_test::LogLines;
using bridge_test::Sample;
using bridge_test::Wish;
using native_test::Weights;

constexpr double kStart_s = 900;

// Sizes that the engines' attention for CPUs has, and a tokenizer, without which no server starts.
// Heads of hidden_size / num_attention_heads, which SGLang takes them for where it gives weights back.
struct Model {
  native_test::TinyModel model{"llama",
                               true,
                               {{"architectures", {"LlamaForCausalLM"}},
                                {"head_dim", 32},
                                {"hidden_size", 128},
                                {"num_attention_heads", 4},
                                {"intermediate_size", 96},
                                {"tie_word_embeddings", false},
                                {"torch_dtype", "float32"}}};
  Model() {
    namespace fs = std::filesystem;
    const fs::path source = fs::path(std::getenv("HEXAD_SOURCE_DIR")) / "configs" / "quickstart_model";
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(source / name, model.path() + "/" + name);
  }
};

inline std::vector<Wish> greedy_wishes(uint64_t first_id, int64_t tokens) {
  std::vector<Wish> wishes;
  for (uint64_t i = 0; i < 4; ++i) {
    Wish wish;
    wish.id = first_id + i, wish.group = i,
    wish.prompt = native_test::random_prompt(i + 1, 6 + 5 * static_cast<int>(i));
    wish.max_new_tokens = tokens, wish.flags = HEXAD_REQUEST_GREEDY | HEXAD_REQUEST_IGNORE_EOS;
    wishes.push_back(wish);
  }
  return wishes;
}

// The native generator's answers to the same.
inline std::map<uint64_t, native_test::Answer> native(const std::string& dir, const Weights& weights,
                                                      const std::vector<Wish>& wishes) {
  native_test::Harness harness({{"model_name", dir}, {"precision", "float32"}, {"max_total_sequence_length", 512}});
  harness.update(weights, 1);
  std::vector<native_test::Ask> asks;
  for (const Wish& wish : wishes) {
    asks.push_back({.id = wish.id,
                    .prompt = wish.prompt,
                    .max_new_tokens = wish.max_new_tokens,
                    .group = wish.group,
                    .flags = wish.flags});
  }
  return harness.run(asks);
}

// By how much log-probs [begin, end) of a sample are off those of our own forward; without `end` all.
inline double worst_logprob(const native_test::TinyModel& model, const Weights& weights, const Wish& wish,
                            const Sample& sample, size_t begin = 0, size_t end = SIZE_MAX) {
  std::vector<int32_t> tokens = wish.prompt;
  tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
  hexad::modeling::LogprobOptions options;
  options.temperature = wish.temperature;
  const std::vector<float> expected = native_test::full_forward(model.config, weights, tokens, options);
  double worst = 0;
  for (size_t i = begin; i < std::min(end, sample.logprobs.size()); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(expected[wish.prompt.size() + i]) - sample.logprobs[i]));
  return worst;
}

template <typename Bridge>
void check_greedy(Bridge& bridge, const Model& model, const Weights& weights, uint64_t first_id, double seconds) {
  const std::vector<Wish> wishes = greedy_wishes(first_id, 24);
  auto& samples = bridge.run(wishes, seconds);
  const auto expected = native(model.model.path(), weights, wishes);
  for (const Wish& wish : wishes) {
    CAPTURE(wish.id);
    CHECK(samples[wish.id].finish == HEXAD_FINISH_LENGTH);
    CHECK(samples[wish.id].tokens == expected.at(wish.id).tokens);
    CHECK(worst_logprob(model.model, weights, wish, samples[wish.id]) < 2e-3);
  }
}

// In buckets of `each` weights.
template <typename Bridge>
void update(Bridge& bridge, const Weights& weights, int64_t version, size_t each = 1) {
  bridge->update_begin(bridge.service(), version);
  const std::vector<int64_t> offsets(8, 0);
  std::vector<std::vector<int64_t>> shapes;
  std::vector<at::Tensor> data;
  std::vector<DLTensor> views;
  std::vector<hexad_weight_slice> slices;
  views.reserve(weights.size());
  for (const auto& [name, tensor] : weights) {
    const at::Tensor& held = data.emplace_back(tensor.contiguous());
    int64_t* const shape = shapes.emplace_back(held.sizes().vec()).data();
    const auto ndim = static_cast<int32_t>(held.dim());
    views.push_back({held.data_ptr(), {kDLCPU, 0}, ndim, {kDLFloat, 32, 1}, shape, nullptr, 0});
    slices.push_back({name.c_str(), &views.back(), shape, offsets.data(), shape, ndim, views.back().dtype});
  }
  for (size_t begin = 0; begin < slices.size(); begin += each) {
    const auto count = static_cast<int64_t>(std::min(each, slices.size() - begin));
    const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, slices.data() + begin, count};
    bridge->update_bucket(bridge.service(), bucket);
  }
  bridge->update_end(bridge.service(), true);
}

// Polls until a request has sent so many tokens and not ended.
template <typename Bridge>
void await_partial(Bridge& bridge, size_t tokens) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (bridge.partial.empty() || bridge.partial.back().second.tokens.size() < tokens) {
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < end, "no tokens come:\n", LogLines::all().text());
    bridge.poll(20);
  }
}

// The number of the leader of the latest server, from the log.
inline pid_t server_pid() {
  const std::string text = LogLines::all().text();
  const size_t at = text.rfind("(process ");
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + 9));
}

}  // namespace peers_test
