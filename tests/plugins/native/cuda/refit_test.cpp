// New weights under CUDA graphs that were captured with the old ones, and sleep that gives a GPU's memory to others.
#include <c10/core/CachingDeviceAllocator.h>

#include "tests/plugins/native/cuda/gpu_model.hpp"

using namespace native_test;

namespace {

double free_bytes() { return double(at::getDeviceAllocator(at::kCUDA)->getMemoryInfo(0).first); }

// Every second weight is another.
Weights changed(Weights weights, double factor) {
  bool second = false;
  for (auto& [name, weight] : weights)
    if ((second = !second)) weight = (weight * factor).to(at::kBFloat16).to(at::kFloat);
  return weights;
}

std::vector<std::vector<int32_t>> tokens_of(const std::map<uint64_t, Answer>& answers) {
  std::vector<std::vector<int32_t>> result;
  for (const auto& [id, answer] : answers) result.push_back(answer.tokens);
  return result;
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: graphs draw from new weights, put in their place beside old ones or after sleep") {
  GpuModel model("qwen2", 64);
  const Weights first = model.weights;
  Harness generator(model.section(400, 40, 256), kGpu);
  const std::vector<Ask> asks = groups(6, 8, 60, 40, 997);
  int64_t version = 0;
  for (const double factor : {1.0, 0.8, 1.3, 0.9}) {
    model.weights = changed(first, factor);
    ++version;
    if (version == 3) generator->sleep(generator.service(), 2), generator->wake(generator.service());
    generator.update(model.weights, version);
    for (int again = 0; again < 2; ++again) {  // the second time every size has its graph
      const auto answers = generator.run(asks);
      for (const auto& [id, answer] : answers)
        CHECK((answer.spans == std::vector<std::pair<int64_t, int64_t>>{{0, version}}));
      Gap gap;
      compare(model, asks, answers, gap, 7);
      MESSAGE("factor ", factor, ": largest ", gap.largest, ", error ", gap.mult_prob_error());
      CHECK(gap.mult_prob_error() < 1.02);
      CHECK(gap.largest < 0.15);
    }
  }
}

TEST_CASE("native: 200 cycles of sleep and wake on a GPU leave the same memory free each time") {
  constexpr double kBound = 32 << 20;  // of what the driver keeps for modules, graphs and its own bookkeeping
  const GpuModel model("llama", 128);
  constexpr int64_t kBlocks = 30000;
  const double cache =
      double(kBlocks) * double(hexad::native::KvCache::bytes_per_block(model.config, 16, at::kBFloat16));
  REQUIRE(cache > 16 * kBound);
  Harness generator(model.section(kBlocks, 40, 256), kGpu);
  const std::vector<Ask> asks = groups(2, 8, 60, 20, 997);
  const auto cycle = [&](int32_t level) {
    generator->sleep(generator.service(), level);
    const double result = free_bytes();
    generator->wake(generator.service());
    generator.update(model.weights, 1);
    return result;
  };
  generator.update(model.weights, 1);
  const auto expected = tokens_of(generator.run(asks));
  double asleep[3] = {};
  for (const int32_t level : {1, 2}) cycle(level), generator.run(asks), asleep[level] = cycle(level);
  CHECK((tokens_of(generator.run(asks)) == expected));
  const double awake = free_bytes();
  CHECK(asleep[1] - awake > cache - kBound);
  CHECK(asleep[2] > asleep[1]);
  for (int i = 0; i < 200; ++i) {
    const int32_t level = 1 + i % 2;
    CHECK(std::abs(cycle(level) - asleep[level]) <= kBound);
    if (i % 10) continue;
    CHECK((tokens_of(generator.run(asks)) == expected));
    CHECK(std::abs(free_bytes() - awake) <= kBound);
  }
}

TEST_SUITE_END();
