// How a router chooses experts, as its model says it.
#pragma once
#include <cstdint>

namespace hexad::model {

enum class ScoreFunction { softmax, sigmoid, sqrt_softplus };

struct TopkOptions {
  int64_t topk = 2;  // 1 ... number of experts
  ScoreFunction score = ScoreFunction::softmax;
  // softmax: over all experts, and the selected weights are used as they are; otherwise over the selected logits, which
  // is the same as renormalising them.
  bool pre_softmax = false;
  // sigmoid, sqrt_softplus with topk > 1: the weights of a token are divided by their sum (+ 1e-20).
  bool normalize = true;
  double scaling_factor = 1.0;  // of the weights
  // Group-limited selection, 0: off. Experts form num_groups equal groups; a token may choose among the experts of its
  // group_topk best. The score of a group is the sum of its best group_score_experts scores (0: topk / group_topk;
  // DeepSeek-V3 takes 2).
  int64_t num_groups = 0, group_topk = 0, group_score_experts = 0;
};

// Throws Error when sizes contradict each other.
void check_topk(const TopkOptions& options, int64_t num_experts);

}  // namespace hexad::model
