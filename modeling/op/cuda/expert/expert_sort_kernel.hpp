// Where each token's row lies when rows are sorted by expert: a stable counting sort.
#pragma once
#include <cstdint>

struct CUstream_st;

namespace hexad::modeling::cuda {

constexpr int kMostSortedExperts = 1024;

// Pair i says that token i / topk goes to experts[i], in [0, num_experts). All results are in order of expert, then of
// pair. No sum depends on the order in which threads run.
struct ExpertSortCall {
  const int64_t* experts = nullptr;  // [pairs]
  int64_t pairs = 0;                 // below 2^31
  int topk = 0, num_experts = 0;     // num_experts is at most kMostSortedExperts
  int32_t* counts = nullptr;         // scratch: [expert_sort_scratch(pairs, num_experts)]
  int32_t* ends = nullptr;           // [num_experts]: where an expert's rows end
  int64_t* tokens = nullptr;         // [pairs]: the token of each row
  int64_t* slots = nullptr;          // [pairs]: the pair of each row
  int64_t* rows = nullptr;           // [pairs]: the row of each pair
};
int64_t expert_sort_scratch(int64_t pairs, int num_experts);
void sort_by_expert(const ExpertSortCall& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
