// Requests to the bridge, and what the fake model says to them.
#pragma once
#include <doctest/doctest.h>
#include <hexad/abi.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/plugins/server_bridge/support/fake_model.hpp"

namespace bridge_test {

struct Sample {
  int32_t finish = HEXAD_FINISH_NONE;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::pair<int64_t, int64_t>> spans;  // start, version
  std::string error;
  int finals = 0;
  std::vector<int16_t> routes;  // the column routed_experts, and its shape
  std::vector<int64_t> route_shape;
};

struct Wish {
  uint64_t id = 0;
  std::vector<int32_t> prompt = {1, 2, 3};
  int64_t max_new_tokens = 12;
  uint64_t group = 0, seed = 1;
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  std::vector<int32_t> stop_token_ids = {};
  std::vector<std::string> stop_strings = {};
  uint32_t flags = 0;
};

// Wishes as the ABI has them; they outlive it.
class Requests {
 public:
  explicit Requests(const std::vector<Wish>& wishes) {
    for (const Wish& wish : wishes) {
      std::vector<const char*>& stops = strings_.emplace_back();
      for (const std::string& text : wish.stop_strings) stops.push_back(text.c_str());
      requests_.push_back({.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings),
                           .flags = wish.flags,
                           .id = wish.id,
                           .group = wish.group,
                           .prompt = wish.prompt.data(),
                           .prompt_size = static_cast<int64_t>(wish.prompt.size()),
                           .max_new_tokens = wish.max_new_tokens,
                           .seed = wish.seed,
                           .temperature = wish.temperature,
                           .top_p = wish.top_p,
                           .min_p = wish.min_p,
                           .top_k = wish.top_k,
                           .stop_token_ids = wish.stop_token_ids.data(),
                           .num_stop_token_ids = static_cast<int64_t>(wish.stop_token_ids.size()),
                           .stop_strings = stops.data(),
                           .num_stop_strings = static_cast<int64_t>(stops.size())});
      pointers_.push_back(&requests_.back());
    }
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  const std::vector<const hexad_request*>& pointers() const { return pointers_; }

 private:
  std::deque<std::vector<const char*>> strings_;
  std::deque<hexad_request> requests_;
  std::vector<const hexad_request*> pointers_;
};

// What the fake model says to a wish, undisturbed.
inline std::pair<std::vector<int32_t>, std::vector<float>> undisturbed(const Wish& wish, uint64_t weights = 0) {
  std::vector<int32_t> tokens = wish.prompt, made;
  std::vector<float> logprobs;
  while (static_cast<int64_t>(made.size()) < wish.max_new_tokens) {
    made.push_back(next_token(tokens, weights));
    logprobs.push_back(next_logprob(tokens, weights));
    tokens.push_back(made.back());
    const auto& stops = wish.stop_token_ids;
    if (std::find(stops.begin(), stops.end(), made.back()) != stops.end()) break;
  }
  return {made, logprobs};
}

// The sample is the one that nothing has disturbed, and came once.
inline void check_sample(const Wish& wish, const Sample& sample, int32_t finish = HEXAD_FINISH_LENGTH,
                         uint64_t weights = 0) {
  const auto [tokens, logprobs] = undisturbed(wish, weights);
  CAPTURE(wish.id);
  CHECK(sample.finals == 1);
  CHECK_MESSAGE(sample.finish == finish, "finish ", sample.finish, " ", sample.error);
  CHECK(sample.tokens == tokens);
  CHECK(sample.logprobs == logprobs);
}

// So many wishes in groups of four, every one with a prompt of its own group.
inline std::vector<Wish> many(int count, int64_t max_new_tokens = 12) {
  std::vector<Wish> wishes;
  for (int i = 0; i < count; ++i) {
    Wish wish;
    wish.id = static_cast<uint64_t>(i), wish.group = static_cast<uint64_t>(i / 4);
    wish.prompt = {1, 2, static_cast<int32_t>(3 + i / 4 % 90), static_cast<int32_t>(i % 97)};
    wish.max_new_tokens = max_new_tokens;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

}  // namespace bridge_test
