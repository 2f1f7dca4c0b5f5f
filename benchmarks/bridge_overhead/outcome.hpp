// One arm's run of some requests: what it took, and whether every one was answered as it should be.
#pragma once
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "benchmarks/bridge_overhead/work.hpp"

namespace hexad::bridge_overhead {

using Clock = std::chrono::steady_clock;

// `count` requests from `first` on, `concurrency` of them at a time.
struct Load {
  uint64_t first = 0;
  int64_t count = 0, concurrency = 1;
  Shape shape;
};

inline double process_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct Outcome {
  // From handing a request over to having all of its answer; of the first ones, handed over at once, and of the others,
  // each of which takes the place of one that has ended.
  std::vector<double> burst_ms, latency_ms;
  Clock::time_point start;         // when the first request was handed over
  double wall_s = 0, cpu_s = 0;    // of the whole run; of this process
  int64_t body_bytes = 0;          // received, where the arm can tell
  std::vector<std::string> wrong;  // the first few
  void add_wrong(std::string text) {
    if (wrong.size() < 5) wrong.push_back(std::move(text));
  }
};

// Accounts for every request of a run.
class Tally {
 public:
  explicit Tally(const Load& load) : load_(load), begun_(static_cast<size_t>(load.count)), ended_(begun_.size()) {
    outcome_.latency_ms.reserve(begun_.size());
    cpu_ = process_cpu_seconds();
    start_ = Clock::now();
  }

  void begin(uint64_t index) { begun_[index - load_.first] = Clock::now(); }
  void end(uint64_t index, const std::string& trouble = {}) {
    const auto now = Clock::now();
    const uint64_t at = index - load_.first;
    if (at >= ended_.size())
      return outcome_.add_wrong(fmt::format("an answer to request {}, which was not made", index));
    if (ended_[at]++) return outcome_.add_wrong(fmt::format("request {} is answered twice", index));
    if (!trouble.empty()) outcome_.add_wrong(fmt::format("request {}: {}", index, trouble));
    auto& latencies = static_cast<int64_t>(at) < load_.concurrency ? outcome_.burst_ms : outcome_.latency_ms;
    latencies.push_back(std::chrono::duration<double, std::milli>(now - begun_[at]).count());
    ++done_;
  }
  int64_t done() const { return done_; }

  Outcome finish(int64_t body_bytes = 0) {
    outcome_.start = start_;
    outcome_.wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
    outcome_.cpu_s = process_cpu_seconds() - cpu_;
    outcome_.body_bytes = body_bytes;
    if (done_ != load_.count) outcome_.add_wrong(fmt::format("{} of {} requests have ended", done_, load_.count));
    return std::move(outcome_);
  }

 private:
  const Load& load_;
  std::vector<Clock::time_point> begun_;
  std::vector<uint8_t> ended_;
  int64_t done_ = 0;
  double cpu_ = 0;
  Clock::time_point start_;
  Outcome outcome_;
};

// "" if these are what the server sends for the request.
inline std::string difference(uint64_t index, const int32_t* tokens, const float* logprobs, int64_t count,
                              const Shape& shape) {
  if (count != shape.new_tokens) return fmt::format("{} tokens, wanted {}", count, shape.new_tokens);
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] != token_at(index, i)) return fmt::format("token {} is not what was sent", i);
    if (logprobs[i] != logprob_at(index, i)) return fmt::format("log-prob {} is not what was sent", i);
  }
  return "";
}

}  // namespace hexad::bridge_overhead
