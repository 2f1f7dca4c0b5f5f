// Kernels of experts: rows of tokens sorted by expert, on their way there and back, the weighted activation between an
// expert's two products, and sums of the gradients of its weights.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

constexpr int kMostSortedExperts = 1024;

// Where each token's row lies when rows are sorted by expert: a stable counting sort.
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

// Row rows[token * topk + j] belongs to a token; every row to one token. Contiguous, dim is a multiple of 8.
struct ExpertRowsCall {
  const int64_t* rows = nullptr;  // [tokens, topk]
  int64_t tokens = 0;
  int topk = 0, dim = 0;
  Element type = Element::f32;
};
// from [tokens, dim] -> to [tokens * topk, dim]: a copy for each row.
void spread_rows(const ExpertRowsCall& call, const void* from, void* to, CUstream_st* stream);
// from [tokens * topk, dim] -> to [tokens, dim]: a token's rows added up in fp32, in the order of j.
void sum_rows(const ExpertRowsCall& call, const void* from, void* to, CUstream_st* stream);

// gate_up [rows, 2 * columns]: the gates, then the ups; columns is a multiple of 8. Row r is weighted by
// probs[slots[r]], or by 1 where probs is null.
struct WeightedSwigluCall {
  const void* gate_up = nullptr;
  const float* probs = nullptr;
  const int64_t* slots = nullptr;
  int64_t rows = 0;
  int columns = 0;
  Element type = Element::f32;
};
// y [rows, columns] = silu(gate) * up * prob, rounded once.
void weighted_swiglu(const WeightedSwigluCall& call, void* y, CUstream_st* stream);
// grad_y [rows, columns] -> grads [rows, 2 * columns], y once more, and grad_probs[slots[r]] (null where probs is).
struct WeightedSwigluGrads {
  const void* grad_y = nullptr;
  void* grads = nullptr;
  void* y = nullptr;
  float* grad_probs = nullptr;
};
void weighted_swiglu_backward(const WeightedSwigluCall& call, const WeightedSwigluGrads& grads, CUstream_st* stream);

// sum += product for each expert that has rows; the others' products are not read. An expert's sum is `parts` runs of
// size / parts elements at sum + e * sum_stride + p * part_stride; its product lies at product + e * product_stride.
// Strides are in elements and may be negative; size / parts is a multiple of 8, and all begin on 16 bytes.
struct AddProductsCall {
  const void* product = nullptr;
  float* sum = nullptr;
  const int32_t* ends = nullptr;  // [experts]: where an expert's rows end
  int64_t size = 0, product_stride = 0, sum_stride = 0, part_stride = 0;
  int experts = 0, parts = 1;
  Element type = Element::f32;
};
void add_products(const AddProductsCall& call, CUstream_st* stream);

// Gradients of weights, in the epilogue of one grouped GEMM (CUTLASS):
// sum[e] += grad_e^T x_e for each expert e, whose rows end at ends[e] (it may have none). grad [rows, out] and x
// [rows, in] are bf16 with grad_stride and x_stride elements between rows. An expert's sum [out, in] is `parts` runs of
// out / parts rows at sum + e * sum_stride + p * part_stride. in and out / parts are multiples of 8, strides of 8 (of
// sums: 4, and they may be negative), and all begin on 16 bytes.
struct GroupedGradientCall {
  const void* grad = nullptr;
  const void* x = nullptr;
  const int32_t* ends = nullptr;
  float* sum = nullptr;
  int64_t grad_stride = 0, x_stride = 0, sum_stride = 0, part_stride = 0;
  int experts = 0, parts = 1, out = 0, in = 0;
  int device = 0, processors = 0;  // of the device
};
// Bytes of scratch memory on the device.
int64_t grouped_gradient_scratch(const GroupedGradientCall& call);
// Throws std::runtime_error when CUTLASS refuses.
void add_grouped_gradient(const GroupedGradientCall& call, void* scratch, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
