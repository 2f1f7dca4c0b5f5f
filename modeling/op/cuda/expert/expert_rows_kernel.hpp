// Rows of tokens on their way to experts and back, and the weighted activation between an expert's two products.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

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

}  // namespace hexad::modeling::cuda
