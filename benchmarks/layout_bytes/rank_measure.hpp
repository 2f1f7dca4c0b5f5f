// One rank of a layout: trains in every form and writes what it held and sent.
#pragma once
#include "benchmarks/layout_bytes/cases.hpp"
#include "benchmarks/layout_bytes/counting_group.hpp"
#include "modeling/backend/memory/meter.hpp"
#include "tests/plugins/backend/harness.hpp"

namespace layout_bytes {

inline std::vector<backend_test::Sequence> sequences(int64_t count) {
  std::vector<backend_test::Sequence> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) {
    for (int64_t token = 0; token < kTokens; ++token)
      result[i].ids.push_back((static_cast<int64_t>(i) * 31 + token * 7) % kVocab);
    result[i].weight.assign(kTokens, 0.5f);
    result[i].weight[0] = 0;
  }
  return result;
}

// Bytes beyond those in use before the backend was made, by the allocator's count.
inline json measure(const Layout& layout, const Form& form, const std::filesystem::path& model) {
  const hexad::modeling::MemoryMeter meter(at::kCPU);
  const int64_t before = meter.allocated_bytes();
  backend_test::Instance backend(policy_of(layout, form, model));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const auto data = sequences(kMicroBatches * backend.info().dp_size);
  auto batches = backend.batches(data, {.sequences = 1});
  const auto train = [&] { backend.train(batches, static_cast<double>(backend_test::total_tokens(data)), 1.0); };
  const auto step = [&] { backend.step(1e-3, 0.01, 1.0); };

  train();
  step();
  sent().clear();
  train();
  const hexad_memory_stats memory = backend.memory();
  const int64_t held = meter.allocated_bytes() - before;
  step();
  const std::map<std::string, double> sent_here = sent();
  return {{"held", held},
          {"peak_beyond_held", memory.activation_peak_bytes},
          {"tensors", memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes},
          {"sent", sent_here}};
}

}  // namespace layout_bytes
