// How far log-probs over a cache in e4m3 lie from full forward passes: with the casts, and without. No bound is
// measured once and written down: each is what a plain pass of the same precision does to the same tokens.
#pragma once
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/near_ties.hpp"

namespace native_test {

inline Json in_fp8_cache(Json section) {
  section["native_cfg"]["kv_cache_dtype"] = "fp8";
  return section;
}

// The reference is the full forward pass in fp32 with casts. The plain pass is another one with casts: for an engine in
// fp32 the reference in another order of sums, for one in bf16 ATen's operators in bf16.
class CacheGaps {
 public:
  // `weights`: fp32, on the CPU; for an engine in bf16 of bf16 values. Both references must outlive this.
  CacheGaps(const hexad::modeling::ModelConfig& config, const Weights& weights, at::ScalarType dtype)
      : config_(config),
        weights_(weights),
        fp32_(dtype == at::kFloat),
        plain_weights_(fp32_ ? with_units_reversed(weights) : in_dtype(weights, dtype)) {}

  // `logprobs` of tokens[first], tokens[first + 1], ...; nan: not measured.
  void add(const std::vector<int32_t>& tokens, size_t first, const float* logprobs) {
    const DecidedPass reference = decided_pass(config_, weights_, tokens);
    const DecidedPass plain = decided_pass(config_, plain_weights_, tokens);
    const std::vector<float> without = full_forward(config_, weights_, tokens);
    // A log-prob comes from the tokens before it.
    const size_t last_sure = fp32_ ? size_t(tokens_decided_alike(reference, plain)) : tokens.size();
    for (size_t t = first; t < tokens.size(); ++t) {
      const float got = logprobs[t - first], want = reference.logprobs[t];
      if (std::isnan(got)) continue;
      const double error = double(got) - want, casts = double(without[t]) - want;
      casts_.add(without[t], want);
      if (t <= last_sure) {
        sure_.add(got, want), plain_.add(plain.logprobs[t], want);
      } else {
        ++unsure_, unsure_squares_ += error * error, unsure_casts_ += casts * casts;
      }
      to_with_ += error * error, to_without_ += (error - casts) * (error - casts);
    }
  }
  void add(const Ask& ask, const Answer& answer) {
    REQUIRE(answer.error == "");
    REQUIRE(int64_t(answer.tokens.size()) == ask.max_new_tokens);
    CHECK(std::ranges::none_of(answer.logprobs, [](float logprob) { return std::isnan(logprob); }));
    std::vector<int32_t> tokens = ask.prompt;
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    add(tokens, ask.prompt.size(), answer.logprobs.data());
  }

  void check() const {
    const auto mean = [](const Gap& gap) { return gap.mult_prob_error() - 1; };
    MESSAGE(config_.family, ": ", sure_.count, " tokens, largest error ", sure_.largest, ", of a plain pass ",
            plain_.largest, "; mean ", mean(sure_), ", ", mean(plain_), "; near ties ", unsure_, ", error ",
            std::sqrt(unsure_squares_), ", casts ", std::sqrt(unsure_casts_), "; mean of casts ", mean(casts_),
            "; to them ", to_with_ / to_without_);
    CHECK(sure_.count > 100);
    // An engine without casts lies next to the pass without them, one with half of them in the middle.
    CHECK(to_with_ < to_without_);
    fp32_ ? check_fp32() : check_bf16(mean(sure_), mean(plain_));
  }

 private:
  void check_fp32() const {
    const double bound = kSumOrders * plain_.largest;
    CHECK(sure_.largest <= bound);
    CHECK(bound < 0.01 * (casts_.mult_prob_error() - 1));  // a wrong cast is seen
    // A cast is off by step / sqrt(12) in the root of the mean square, one that turns by a step more: errors stay below
    // what casts do while less than a twelfth of them turn. Near ties are some in ten thousand: 4e-6 of a number on
    // either side, beside steps of a tenth of it. Experts are swapped by casts too, and more of them.
    CHECK(unsure_squares_ <= unsure_casts_);
  }
  // Errors add up at random: an engine that rounds twice as often as ATen's operators is off by sqrt(2) as much. The
  // largest of some hundred errors is less steady: FlashAttention's tests allow twice that of a plain pass.
  void check_bf16(double mean, double plain_mean) const {
    CHECK(mean <= std::sqrt(2) * plain_mean);
    CHECK(sure_.largest <= 2 * plain_.largest);
  }

  const hexad::modeling::ModelConfig& config_;
  const Weights& weights_;
  bool fp32_;
  Weights plain_weights_;
  Gap sure_, plain_, casts_;  // of the engine and of the plain pass, where no near tie lies before; and of no casts
  int64_t unsure_ = 0;        // tokens behind a near tie
  double unsure_squares_ = 0, unsure_casts_ = 0;
  double to_with_ = 0, to_without_ = 0;  // squared distances of all tokens
};

}  // namespace native_test
