// Generators of several ranks: each test process is a rank of a replica, and runs one that is alone beside it.
#pragma once
#include "plugins/native/parallel/shard.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/native/support/tight.hpp"
#include "tests/runtime/runtime_library.hpp"

namespace native_test {

using rank_process::Rank;

// Makes this process the rank; once a process.
inline void become(const Rank& rank, int64_t timeout_ms = 60000) {
  runtime_test::start(rank, timeout_ms);
  rank_runtime() = &runtime_test::runtime();
}

inline at::Device device_of(const Rank& rank) {
  return test_device::is_gpu() ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(rank.rank)) : at::Device(at::kCPU);
}

// The section for replicas of `ranks`, with as many blocks of the KV cache as one rank has.
inline Json shared_by(Json section, const hexad::modeling::ModelConfig& config, int64_t ranks) {
  const auto bytes = [](const hexad::modeling::ModelConfig& of) {
    return double(hexad::native::KvCache::bytes_per_block(of, 16, at::kFloat));
  };
  Json& native = section["native_cfg"];
  native["kv_cache_gb"] =
      native["kv_cache_gb"].get<double>() * bytes(hexad::native::local_config(config, {0, ranks})) / bytes(config);
  native["tensor_parallel_size"] = ranks;
  return section;
}

// The same tokens, log-probs that lie no farther apart than `bound`, and the same versions.
inline void check_same(const std::map<uint64_t, Answer>& got, const std::map<uint64_t, Answer>& want,
                       double bound = 2e-5) {
  REQUIRE(got.size() == want.size());
  for (const auto& [id, answer] : want) {
    CAPTURE(id);
    const Answer& other = got.at(id);
    CHECK(other.error == answer.error);
    CHECK(other.finish == answer.finish);
    CHECK(other.tokens == answer.tokens);
    CHECK(other.spans == answer.spans);
    REQUIRE(other.logprobs.size() == answer.logprobs.size());
    double largest = 0;
    for (size_t i = 0; i < answer.logprobs.size(); ++i)
      largest = std::max(largest, double(std::abs(other.logprobs[i] - answer.logprobs[i])));
    CHECK(largest <= bound);
  }
}

// What weight_layout reports.
inline std::map<std::string, int64_t> reported_sums(Harness& generator) {
  std::map<std::string, int64_t> sums;
  generator.context().metric = [&](const hexad::plugin::Metric& metric) {
    CHECK(metric.name.starts_with("weight_sum/"));
    sums[metric.name.substr(11)] = static_cast<int64_t>(metric.value);
  };
  hexad_weight_list list{};
  generator->weight_layout(generator.service(), list);
  generator.context().metric = nullptr;
  return sums;
}

}  // namespace native_test
