// Sleep and wake, many times: all memory goes and comes again, and what is generated between is the same.
#include "modeling/backend/memory/meter.hpp"
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;

namespace {

constexpr int64_t kBound = 1024;  // bytes: what passes leave behind of their own, such as a table that has grown

}  // namespace

TEST_CASE("200 cycles of sleep and wake give the same memory back each time") {
  hexad::modeling::MemoryMeter meter(at::kCPU);
  // Kernels of the CPU's own, and ATen's operators, which keep their weights in one piece.
  for (const std::string family : {"llama", "qwen3_moe"}) {
    CAPTURE(family);
    const TinyModel model(family);
    const Json section = {{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 0.0005}}}};
    const int64_t outside = meter.allocated_bytes();
    Harness generator(section);
    const int64_t weights = meter.allocated_bytes() - outside;
    const Ask ask{.id = 1, .prompt = {5, 9, 2, 44}, .max_new_tokens = 10, .seed = 3};
    const Answer expected = generator.run({ask}).at(1);
    const int64_t working = meter.allocated_bytes() - outside, cache = working - weights;
    CHECK(cache > 400'000);
    int64_t asleep[3] = {};  // by level
    for (int cycle = 0; cycle < 200; ++cycle) {
      const int level = cycle % 3 ? 2 : 1;
      generator->sleep(generator.service(), level);
      const int64_t left = meter.allocated_bytes() - outside;
      if (asleep[level] == 0) asleep[level] = left;
      CHECK(std::abs(left - asleep[level]) <= kBound);
      if (cycle % 2) generator->wake(generator.service());
      if (level == 2) generator.update(model.weights, 0);
      if (cycle % 2 == 0) generator->wake(generator.service());
      if (cycle % 5) continue;
      CHECK(generator.run({ask}).at(1) == expected);
      CHECK(std::abs(meter.allocated_bytes() - outside - working) <= kBound);
    }
    CHECK(std::abs(asleep[1] - weights) <= kBound);
    CHECK(weights - asleep[2] >= [&] {
      int64_t bytes = 0;
      for (const auto& [name, weight] : model.weights) bytes += static_cast<int64_t>(weight.nbytes());
      return bytes;
    }());
  }
}
