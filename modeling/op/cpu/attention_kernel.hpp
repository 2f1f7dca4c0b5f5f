// CPU kernels of cpu_attention.hpp: one document and one KV head with the query heads that share it. FlashAttention
// (arXiv 2205.14135): scores exist in tiles, and are computed again in the backward pass. T is float or cpu::BFloat16;
// the arithmetic is fp32. What a document gets goes by nothing but the document.
#pragma once
#include <cstdint>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

// Element (t, h, d) of a document's heads is data[t * token + h * head + d].
template <typename T>
struct HeadRows {
  T* data;
  int64_t token, head;

  T* row(int64_t t, int64_t h = 0) const { return data + t * token + h * head; }
};

struct AttentionShape {
  int64_t tokens;              // of the document, at least 1
  int64_t group;               // query heads that share the KV head
  int64_t width, value_width;  // of a key's head and of a value's
  int64_t window;              // keys that a query sees, itself included; 0: all before it
};

template <typename T>
struct AttentionInput {
  HeadRows<const T> q, k, v;
};

template <typename T>
struct AttentionForward {
  AttentionShape shape;
  AttentionInput<T> in;
  HeadRows<T> out;
  HeadRows<float> log_sum;  // width 1: the logarithm of a row's sum of exponentials, for the backward pass
  int64_t first, count;     // the queries of this task
};

template <typename T>
struct AttentionBackward {
  AttentionShape shape;
  AttentionInput<T> in;
  HeadRows<const T> out, grad_out;
  HeadRows<const float> log_sum;
  HeadRows<T> grad_q, grad_k, grad_v;
};

// Queries that a task of the forward pass holds at most: its first one is to be a multiple of it.
int64_t attention_queries(int64_t group);

// Floats of scratch that a task needs.
int64_t attention_forward_scratch(const AttentionShape& shape);
int64_t attention_backward_scratch(const AttentionShape& shape);

void attention_forward(const AttentionForward<float>& task, float* scratch);
void attention_forward(const AttentionForward<BFloat16>& task, float* scratch);

void attention_backward(const AttentionBackward<float>& task, float* scratch);
void attention_backward(const AttentionBackward<BFloat16>& task, float* scratch);

}  // namespace hexad::modeling::cpu
