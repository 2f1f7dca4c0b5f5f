#include "plugins/native/sample/sampler.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "plugins/native/sample/philox.hpp"
#include "tests/plugins/native/support/random_logits.hpp"

using namespace hexad::native;
using native_test::random_logits;

namespace {

// The same filters by full sorts in double precision.
std::vector<double> reference(const std::vector<float>& logits, const SamplingParams& p) {
  const size_t vocab = logits.size();
  std::vector<double> x(logits.begin(), logits.end());
  for (double& v : x) v /= p.temperature;
  const double top = *std::max_element(x.begin(), x.end());
  for (double& v : x) {
    if (std::exp(v - top) < p.min_p) v = -INFINITY;
  }
  std::vector<size_t> order(vocab);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  if (p.top_k > 0 && size_t(p.top_k) < vocab) {
    const double threshold = x[order[vocab - p.top_k]];
    for (double& v : x) v = v < threshold ? -INFINITY : v;
  }
  double total = 0;
  for (const double v : x) total += std::exp(v - top);
  double cumulative = 0;
  for (size_t i = 0; i + 1 < vocab && p.top_p < 1; ++i) {
    cumulative += std::exp(x[order[i]] - top) / total;
    if (cumulative > 1 - p.top_p) break;
    x[order[i]] = -INFINITY;
  }
  double kept = 0;
  for (const double v : x) kept += std::exp(v - top);
  for (double& v : x) v = std::exp(v - top) / kept;
  return x;
}

}  // namespace

TEST_CASE("philox gives the published vectors") {
  CHECK(philox(0, {0, 0, 0, 0}) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const uint32_t ones = 0xffffffff;
  CHECK(philox(~uint64_t{0}, {ones, ones, ones, ones}) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("draws follow the distribution: chi-square over a large vocabulary and every kind of filter") {
  const int64_t vocab = 1500;
  const std::vector<float> logits = random_logits(vocab, 3, 2.0f);
  const SamplingParams kinds[] = {{},
                                  {.temperature = 0.7},
                                  {.temperature = 1.5, .top_k = 40},
                                  {.top_p = 0.8},
                                  {.min_p = 0.05},
                                  {.temperature = 1.2, .top_p = 0.9, .min_p = 0.01, .top_k = 100}};
  for (const SamplingParams& params : kinds) {
    const std::vector<double> want = reference(logits, params);
    constexpr int kDraws = 60000;
    std::vector<double> count(vocab, 0.0);
    for (int i = 0; i < kDraws; ++i) {
      const Draw d = draw(logits.data(), vocab, params, uniform(99, i));
      REQUIRE(want[d.token] > 0);
      CHECK(d.logprob == doctest::Approx(std::log(want[d.token])).epsilon(2e-5));
      count[d.token] += 1;
    }
    double chi = 0, rest_seen = 0, rest_want = 0, cells = 0;
    for (int64_t i = 0; i < vocab; ++i) {
      const double expected = want[i] * kDraws;
      if (expected < 5) {
        rest_seen += count[i], rest_want += expected;
        continue;
      }
      chi += (count[i] - expected) * (count[i] - expected) / expected;
      cells += 1;
    }
    if (rest_want > 0) chi += (rest_seen - rest_want) * (rest_seen - rest_want) / rest_want;
    // Mean cells, variance 2 * cells; five deviations.
    CHECK(chi < cells + 5 * std::sqrt(2 * cells) + 5);
  }
}

TEST_CASE("filters equal full sorts on many random rows") {
  std::mt19937_64 rng(5);
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t vocab = 1 + rng() % 3000;
    const std::vector<float> logits = random_logits(vocab, rng(), 0.1f + 0.01f * (rng() % 500));
    const auto chance = [&](double otherwise, double value) { return rng() % 2 ? value : otherwise; };
    const double u = (rng() % 1000) / 1000.0;
    SamplingParams params{.temperature = 0.1 + u,
                          .top_p = chance(1, 0.01 + 0.98 * u),
                          .min_p = chance(0, u * u * 0.5),
                          .top_k = int64_t(chance(0, 1 + rng() % 200))};
    const std::vector<double> want = reference(logits, params);
    for (int i = 0; i < 40; ++i) {
      const Draw d = draw(logits.data(), vocab, params, (i + 0.5) / 40);
      REQUIRE(want[d.token] > 0);
      CHECK(std::abs(d.logprob - std::log(want[d.token])) < 1e-4);
    }
  }
}

TEST_CASE("a row without a finite largest logit draws nothing; masked tokens are never drawn") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf}) {
    std::vector<float> logits = random_logits(100, 1, 1);
    logits[61] = bad;
    CHECK(draw(logits.data(), 100, {}, 0.5).token == -1);
    CHECK(draw(logits.data(), 100, {.temperature = 0}, 0.5).token == -1);
  }
  std::vector<float> masked(1000, -inf);
  CHECK(draw(masked.data(), 1000, {}, 0.5).token == -1);
  masked[777] = -3, masked[12] = -3;
  for (int i = 0; i < 100; ++i) {
    const Draw d = draw(masked.data(), 1000, {}, i / 100.0);
    CHECK((d.token == 777 || d.token == 12));
    CHECK(d.logprob == doctest::Approx(std::log(0.5)));
  }
  CHECK(draw(masked.data(), 1000, {}, std::nextafter(1.0, 0.0)).token == 777);
}
