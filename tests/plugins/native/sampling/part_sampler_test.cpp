// Draws from rows of logits in parts: what draw() gives for whole rows, which is tested beside.
#include "plugins/native/sample/part_sampler.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "plugins/native/sample/philox.hpp"
#include "tests/plugins/native/support/random_logits.hpp"

using namespace hexad::native;
using native_test::random_logits;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// As torch.chunk cuts it among `ranks`; every part but that of the draw is passed over.
Draw draw_in_parts(const std::vector<float>& logits, int64_t ranks, const SamplingParams& params, double u) {
  const auto vocab = static_cast<int64_t>(logits.size()), widest = (vocab + ranks - 1) / ranks;
  const auto first = [&](int64_t part) { return std::min(vocab, part * widest); };
  std::vector<PartSum> parts;
  for (int64_t part = 0; part < ranks; ++part)
    parts.push_back(sum_of_part(logits.data() + first(part), first(part + 1) - first(part), params));
  const PartDraw found = find_part(parts, params, u);
  if (found.part < 0) return {};
  const int64_t begin = first(found.part), columns = first(found.part + 1) - begin;
  REQUIRE(columns > 0);
  return draw_of(number_of(draw_in_part(logits.data() + begin, columns, begin, found, params)));
}

}  // namespace

TEST_CASE("a row in parts gives the token and the log-prob of the whole row") {
  int64_t total = 0, different = 0;
  for (const int64_t vocab : {1, 5, 97, 1500, 20001}) {
    for (const float spread : {0.5f, 3.0f, 40.0f}) {
      const std::vector<float> logits = random_logits(vocab, uint64_t(vocab), spread);
      for (const int64_t ranks : {2, 3, 4, 8}) {
        for (int i = 0; i < 200; ++i) {
          const SamplingParams params{.temperature = i % 4 == 0 ? 0.0 : 0.2 + 0.4 * (i % 4)};
          const double u = uniform(7, uint64_t(i));
          const Draw want = draw(logits.data(), vocab, params, u), got = draw_in_parts(logits, ranks, params, u);
          ++total;
          // Where u falls between two tokens within rounding, the neighbour may be drawn.
          different += got.token != want.token;
          if (params.greedy()) CHECK(got.token == want.token);
          if (got.token == want.token) CHECK(std::abs(got.logprob - want.logprob) < 2e-5);
        }
      }
    }
  }
  CHECK(total == 12000);
  CHECK(different <= 2);
}

TEST_CASE("parts of a row: equal logits, masked parts, the ends of chance, and rows that are none") {
  std::vector<float> logits(1000, -kInfinity);
  CHECK(draw_in_parts(logits, 4, {}, 0.5).token == -1);
  CHECK(draw_in_parts(logits, 4, {.temperature = 0}, 0.5).token == -1);
  logits[300] = -3, logits[777] = -3;  // in the second part and the last
  const double last = std::nextafter(1.0, 0.0);
  CHECK(draw_in_parts(logits, 4, {.temperature = 0}, last).token == 300);
  for (const auto& [u, token] : std::vector<std::pair<double, int>>{{0, 300}, {0.49, 300}, {0.51, 777}, {last, 777}}) {
    const Draw got = draw_in_parts(logits, 4, {}, u);
    CHECK(got.token == token);
    CHECK(got.logprob == doctest::Approx(std::log(0.5)));
  }
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    for (const size_t place : {0, 640, 999}) {
      std::vector<float> unsound = random_logits(1000, 3, 1);
      unsound[place] = bad;
      for (const double temperature : {0.0, 1.0})
        CHECK(draw_in_parts(unsound, 4, {.temperature = temperature}, 0.5).token == -1);
    }
  }
}
