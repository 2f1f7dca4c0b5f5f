#include "modeling/op/row/gather.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>

#include "modeling/error.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBytesAThread = 1 << 16;  // at least

struct GatherOnCpu : Function<GatherOnCpu> {
  // index_select copies rows of several dimensions by an operator's call each: a microsecond a row.
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in, const at::Tensor& rows_in) {
    const at::Tensor x = x_in.contiguous(), rows = rows_in.contiguous();
    std::vector<int64_t> shape = x.sizes().vec();
    const int64_t count = shape[0];
    shape[0] = rows.numel();
    at::Tensor out = at::empty(shape, x.options());
    const int64_t bytes = count == 0 ? 0 : x.numel() / count * x.element_size();
    const int64_t* row = rows.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < rows.numel(); ++i)
      if (row[i] < 0 || row[i] >= count) fail("gather of rows: got row {} of {}", row[i], count);
    const char* from = static_cast<const char*>(x.const_data_ptr());
    char* to = static_cast<char*>(out.mutable_data_ptr());
    cpu::parallel_for(rows.numel(), std::max<int64_t>(1, kBytesAThread / std::max<int64_t>(1, bytes)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * bytes, from + row[i] * bytes, bytes);
                      });
    ctx->save_for_backward({rows});
    ctx->saved_data["rows"] = count;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    std::vector<int64_t> shape = grads[0].sizes().vec();
    shape[0] = ctx->saved_data["rows"].toInt();
    return {at::zeros(shape, grads[0].options()).index_add_(0, ctx->get_saved_variables()[0], grads[0]), at::Tensor()};
  }
};

}  // namespace

at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& rows) {
  return x.is_cpu() ? GatherOnCpu::apply(x, rows) : x.index_select(0, rows);
}

}  // namespace hexad::modeling
