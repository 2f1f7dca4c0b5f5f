// What k samples of a prompt come to, from n of them: pass@k and cons@k (NeMo-RL's eval.metric).
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace hexad::inference {

// How likely one of k samples is right, where c of n were (Chen et al. 2021, arXiv 2107.03374): 1 - C(n - c, k) / C(n,
// k), without bias; 1 <= k <= n.
double pass_at_k(int64_t n, int64_t c, int64_t k);

// One of n samples of a prompt.
struct Vote {
  std::string answer;  // equal texts are one answer; none is an answer too
  bool right = false;
};

// How likely the answer that most of k samples give is right (Wang et al. 2022, arXiv 2203.11171, as majority voting):
// the mean over all sets of k of the samples, 1 <= k <= n, of whether the first sample in it that gives the set's most
// frequent answer is right. Of answers that are as frequent the one that comes first in the set is taken. Exact,
// without going through the sets: O(n^2 k^2).
double consensus_at_k(std::span<const Vote> votes, int64_t k);

}  // namespace hexad::inference
