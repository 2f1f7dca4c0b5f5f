#include "modeling/op/attention/cpu_attention.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "modeling/op/cpu/attention_kernel.hpp"
#include "modeling/op/cpu/dispatch.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What a thread does at a time. The backward pass takes whole documents of a KV head: their keys' gradients are sums
// over all queries, and splitting these would either add up in an order that goes by threads or compute scores twice.
struct Task {
  int64_t begin, tokens;  // of the document
  int64_t kv_head;
  int64_t first, count;  // queries
};

// Token and head strides of rows whose elements are adjacent.
template <typename T, typename Tensor>
cpu::HeadRows<T> head_rows(Tensor& x, const Task& task, int64_t group) {
  T* data;
  if constexpr (std::is_const_v<T>) {
    data = cpu::data<std::remove_const_t<T>>(x);
  } else {
    data = cpu::mutable_data<T>(x);
  }
  const int64_t token = x.stride(0), head = x.stride(1);
  return {data + task.begin * token + task.kv_head * group * head, token, head};
}

struct Inputs {
  at::Tensor q, k, v;
  int64_t window;

  int64_t group() const { return q.size(1) / k.size(1); }
  cpu::AttentionShape shape(const Task& task) const { return {task.tokens, group(), q.size(2), v.size(2), window}; }
  template <typename T>
  cpu::AttentionInput<T> rows(const Task& task) const {
    return {head_rows<const T>(q, task, group()), head_rows<const T>(k, task, 1), head_rows<const T>(v, task, 1)};
  }
};

at::Tensor with_adjacent_elements(const at::Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

// The longest first, so that none is left over at the end.
std::vector<Task> make_tasks(const std::vector<int64_t>& offsets, int64_t kv_heads, int64_t queries) {
  std::vector<Task> tasks;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t tokens = offsets[i + 1] - offsets[i], step = queries > 0 ? queries : std::max<int64_t>(tokens, 1);
    for (int64_t first = 0; first < tokens; first += step)
      for (int64_t head = 0; head < kv_heads; ++head)
        tasks.push_back({offsets[i], tokens, head, first, std::min(step, tokens - first)});
  }
  const auto pairs = [](const Task& task) { return task.count * (task.first + task.count); };
  std::stable_sort(tasks.begin(), tasks.end(), [&](const Task& a, const Task& b) { return pairs(a) > pairs(b); });
  return tasks;
}

// Calls body(task, scratch) for each, with as many floats as needed(task) says.
template <typename Needed, typename Body>
void run_tasks(const std::vector<Task>& tasks, const Needed& needed, const Body& body) {
  cpu::parallel_each(int64_t(tasks.size()), std::numeric_limits<int64_t>::max(), [&](int64_t i) {
    const auto scratch = std::make_unique_for_overwrite<float[]>(size_t(needed(tasks[i])));
    body(tasks[i], scratch.get());
  });
}

struct CpuAttention : Function<CpuAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int64_t>& offsets, int64_t window) {
    const Inputs in = {with_adjacent_elements(q), with_adjacent_elements(k), with_adjacent_elements(v), window};
    const int64_t group = in.group();
    at::Tensor out = at::empty({q.size(0), q.size(1), v.size(2)}, q.options());
    at::Tensor log_sum = at::empty({q.size(0), q.size(1), 1}, q.options().dtype(at::kFloat));
    const auto scratch = [&](const Task& task) { return cpu::attention_forward_scratch(in.shape(task)); };
    cpu::with_elements(q, [&](auto element) {
      using T = decltype(element);
      run_tasks(make_tasks(offsets, k.size(1), cpu::attention_queries(group)), scratch,
                [&](const Task& task, float* s) {
                  cpu::attention_forward(
                      cpu::AttentionForward<T>{in.shape(task), in.rows<T>(task), head_rows<T>(out, task, group),
                                               head_rows<float>(log_sum, task, group), task.first, task.count},
                      s);
                });
    });
    ctx->save_for_backward({in.q, in.k, in.v, out, log_sum});
    ctx->saved_data["offsets"] = offsets;
    ctx->saved_data["window"] = window;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Inputs in = {saved[0], saved[1], saved[2], ctx->saved_data["window"].toInt()};
    const at::Tensor &out = saved[3], &log_sum = saved[4], grad = with_adjacent_elements(grads[0]);
    const int64_t group = in.group();
    const auto gradient = [](const at::Tensor& x) { return at::empty(x.sizes(), x.options()); };
    at::Tensor grad_q = gradient(in.q), grad_k = gradient(in.k), grad_v = gradient(in.v);
    const std::vector<Task> tasks = make_tasks(ctx->saved_data["offsets"].toIntVector(), in.k.size(1), 0);
    const auto scratch = [&](const Task& task) { return cpu::attention_backward_scratch(in.shape(task)); };
    cpu::with_elements(in.q, [&](auto element) {
      using T = decltype(element);
      run_tasks(tasks, scratch, [&](const Task& task, float* s) {
        cpu::attention_backward(
            cpu::AttentionBackward<T>{in.shape(task), in.rows<T>(task), head_rows<const T>(out, task, group),
                                      head_rows<const T>(grad, task, group),
                                      head_rows<const float>(log_sum, task, group), head_rows<T>(grad_q, task, group),
                                      head_rows<T>(grad_k, task, 1), head_rows<T>(grad_v, task, 1)},
            s);
      });
    });
    return {grad_q, grad_k, grad_v, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool fits_cpu_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return cpu::has_kernels(q) && k.scalar_type() == q.scalar_type() && v.scalar_type() == q.scalar_type();
}

at::Tensor cpu_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const std::vector<int64_t>& offsets, int64_t window) {
  return CpuAttention::apply(q, k, v, offsets, window);
}

}  // namespace hexad::modeling
