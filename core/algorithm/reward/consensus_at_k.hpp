// cons@k: how likely the answer that most of k samples give is right (NeMo-RL's eval.metric; Wang et al. 2022, arXiv
// 2203.11171, as majority voting).
#pragma once
#include <span>
#include <string>

namespace hexad::algorithm {

// One of n samples of a prompt.
struct Vote {
  std::string answer;  // equal texts are one answer; none is an answer too
  bool right = false;
};

// The mean over all sets of k of the samples, 1 <= k <= n, of whether the first sample in it that gives the set's most
// frequent answer is right. Of answers that are as frequent the one that comes first in the set is taken. Exact, without
// going through the sets: O(n^2 k^2).
double consensus_at_k(std::span<const Vote> votes, int64_t k);

}  // namespace hexad::algorithm
