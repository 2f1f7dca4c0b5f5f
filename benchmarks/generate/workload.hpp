// The work of the tests, the same as the peer's script gives vLLM.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace generate {

struct Sample {
  int64_t prompt;  // which
  int64_t new_tokens;
};

struct Workload {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<Sample> samples;
};

// Python's random.Random(seed).gauss(0, 1), so that lengths are those of the peer's script.
class PythonGauss {
 public:
  explicit PythonGauss(uint32_t seed) {
    state_[0] = 19650218u;
    for (uint32_t i = 1; i < kSize; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    uint32_t i = 1;
    const auto next = [&] {
      if (++i >= kSize) state_[0] = state_[kSize - 1], i = 1;
    };
    for (uint32_t k = kSize; k > 0; --k, next())
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525u)) + seed;
    for (uint32_t k = kSize - 1; k > 0; --k, next())
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941u)) - i;
    state_[0] = 0x80000000u;
  }
  double operator()() {
    if (has_spare_) return has_spare_ = false, spare_;
    const double angle = uniform() * 2.0 * 3.14159265358979323846;
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    spare_ = std::sin(angle) * radius, has_spare_ = true;
    return std::cos(angle) * radius;
  }

 private:
  static constexpr uint32_t kSize = 624;
  double uniform() {
    const uint32_t high = word() >> 5, low = word() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }
  uint32_t word() {
    if (index_ == kSize) {
      for (uint32_t k = 0; k < kSize; ++k) {
        const uint32_t y = (state_[k] & 0x80000000u) | (state_[(k + 1) % kSize] & 0x7fffffffu);
        state_[k] = state_[(k + 397) % kSize] ^ (y >> 1) ^ (y & 1u ? 0x9908b0dfu : 0u);
      }
      index_ = 0;
    }
    uint32_t y = state_[index_++];
    y ^= y >> 11, y ^= (y << 7) & 0x9d2c5680u, y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  std::array<uint32_t, kSize> state_;
  uint32_t index_ = kSize;
  bool has_spare_ = false;
  double spare_ = 0;
};

// n lognormal lengths, cut at `cut`, whose mean after the cut is `mean`.
inline std::vector<int64_t> skewed_lengths(int64_t n, double mean, int64_t cut, uint32_t seed) {
  PythonGauss gauss(seed);
  std::vector<double> normal(n);
  for (double& z : normal) z = gauss();
  double low = 0, high = std::log(double(cut));
  const auto lengths = [&](double mu) {
    std::vector<int64_t> result;
    for (const double z : normal) result.push_back(std::clamp<int64_t>(std::llrint(std::exp(mu + z)), 1, cut));
    return result;
  };
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const int64_t length : lengths(middle)) sum += double(length);
    (sum / double(n) < mean ? low : high) = middle;
  }
  return lengths((low + high) / 2);
}

// `name` a, b, d of the peer, or w: a warm-up. Fresh prompts for every `seed`.
inline Workload make_workload(const std::string& name, int64_t vocab, int64_t running, uint64_t seed) {
  std::mt19937_64 rng(seed);
  Workload work;
  const auto prompt = [&](int64_t size) {
    std::vector<int32_t>& ids = work.prompts.emplace_back(size);
    for (int32_t& id : ids) id = int32_t(16 + rng() % uint64_t(vocab - 32));
    return int64_t(work.prompts.size()) - 1;
  };
  const auto add = [&](int64_t which, int64_t samples, int64_t new_tokens) {
    for (int64_t i = 0; i < samples; ++i) work.samples.push_back({which, new_tokens});
  };
  if (name == "a") {
    for (int i = 0; i < 64; ++i) add(prompt(1024), 16, 1024);
  } else if (name == "b") {
    const std::vector<int64_t> lengths = skewed_lengths(64 * 32, 595, 4096, 1234);
    for (int i = 0; i < 64; ++i) {
      const int64_t which = prompt(150 + int64_t(rng() % 101));
      for (int j = 0; j < 32; ++j) work.samples.push_back({which, lengths[i * 32 + j]});
    }
  } else if (name == "d") {
    for (int i = 0; i < 8; ++i) add(prompt(128), 1, 512);
  } else {
    for (int64_t i = 0; i < running; ++i) add(prompt(64), 1, 24);
    for (int i = 0; i < 8; ++i) add(prompt(160), 16, 24);
  }
  return work;
}

}  // namespace generate
