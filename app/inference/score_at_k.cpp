#include "app/inference/score_at_k.hpp"

#include <map>
#include <vector>

namespace hexad::inference {
namespace {

using Number = long double;  // C(n, k) of thousands of samples
using Places = std::vector<size_t>;

Number choose(int64_t n, int64_t k) {
  if (k < 0 || k > n) return 0;
  Number count = 1;
  for (int64_t i = 0; i < k; ++i) count *= static_cast<Number>(n - i) / static_cast<Number>(i + 1);
  return count;
}

// ways[j]: of taking j samples of one answer where another has `most` and `first` is its first sample. As many are no
// rival if the first of them comes later.
std::vector<Number> ways_of_losing(const Places& places, int64_t most, size_t first) {
  const auto all = static_cast<int64_t>(places.size());
  int64_t later = 0;
  for (const size_t place : places) later += place > first;
  std::vector<Number> ways;
  for (int64_t j = 0; j < most && j <= all; ++j) ways.push_back(choose(all, j));
  if (most <= later) ways.push_back(choose(later, most));
  return ways;
}

// The coefficients of a product of polynomials up to x^degree.
std::vector<Number> product(const std::vector<Number>& a, const std::vector<Number>& b, size_t degree) {
  std::vector<Number> result(degree + 1);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size() && i + j <= degree; ++j) result[i + j] += a[i] * b[j];
  }
  return result;
}

}  // namespace

double pass_at_k(int64_t n, int64_t c, int64_t k) {
  double none = 1;  // of k draws without replacement
  for (int64_t i = 0; i < k; ++i) none *= static_cast<double>(n - c - i) / static_cast<double>(n - i);
  return n - c < k ? 1 : 1 - none;
}

double consensus_at_k(std::span<const Vote> votes, int64_t k) {
  std::map<std::string, Places> answers;
  for (size_t i = 0; i < votes.size(); ++i) answers[votes[i].answer].push_back(i);
  Number good = 0;  // sets whose answer is right, by their answer, its first sample and how often they give it
  for (const auto& [winner, places] : answers) {
    for (size_t p = 0; p < places.size(); ++p) {
      if (!votes[places[p]].right) continue;
      const auto left = static_cast<int64_t>(places.size() - p);
      for (int64_t most = 1; most <= std::min(left, k); ++most) {
        const auto degree = static_cast<size_t>(k - most);
        std::vector<Number> others = {1};
        for (const auto& [answer, rivals] : answers)
          if (answer != winner) others = product(others, ways_of_losing(rivals, most, places[p]), degree);
        others.resize(degree + 1);
        good += choose(left - 1, most - 1) * others[degree];
      }
    }
  }
  return static_cast<double>(good / choose(static_cast<int64_t>(votes.size()), k));
}

}  // namespace hexad::inference
