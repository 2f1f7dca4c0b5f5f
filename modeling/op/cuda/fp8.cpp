// FP8 copies, and FP8 products that add to fp32 sums.
#include <ATen/Functions.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <cublasLt.h>

#include "modeling/error.hpp"
#include "modeling/op/cuda/binding.hpp"
#include "modeling/op/cuda/fp8_kernel.hpp"
#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling::cuda {
namespace {

Fp8Source source_of(const at::Tensor& x) {
  return {x.size(0), x.size(1), x.stride(0), x.const_data_ptr(), element_of(x)};
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("FP8 weight gradient: {}: {}", what, cublasLtGetStatusString(status));
}

template <typename T, cublasStatus_t (*Destroy)(T)>
struct Owned {
  T handle = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  ~Owned() {
    if (handle) Destroy(handle);
  }
};

struct Layout : Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> {
  // Column-major; `count` of them, `distance` elements apart.
  Layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride, int32_t count, int64_t distance) {
    check(cublasLtMatrixLayoutCreate(&handle, type, uint64_t(rows), uint64_t(columns), stride), "layout");
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, distance);
  }
  template <typename V>
  void set(cublasLtMatrixLayoutAttribute_t attribute, V value) {
    check(cublasLtMatrixLayoutSetAttribute(handle, attribute, &value, sizeof value), "layout");
  }
};

struct Operation : Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> {
  Operation() { check(cublasLtMatmulDescCreate(&handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "operation"); }
  template <typename V>
  void set(cublasLtMatmulDescAttributes_t attribute, V value) {
    check(cublasLtMatmulDescSetAttribute(handle, attribute, &value, sizeof value), "operation");
  }
};

struct Preference : Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> {
  explicit Preference(size_t workspace) {
    check(cublasLtMatmulPreferenceCreate(&handle), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                               sizeof workspace),
          "preference");
    const uint32_t aligned =
        16;  // bytes: what takes_products and the casts see to; kernels expect more unless they are told
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      check(cublasLtMatmulPreferenceSetAttribute(handle, which, &aligned, sizeof aligned), "preference");
  }
};

cudaDataType_t fp8_type(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat8_e5m2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
}

// sum [parts][rows, K] += g [parts * rows, T] times x [K, T] transposed. False where cuBLAS has no kernel for it.
bool run_product(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x) {
  const int64_t rows = sum.size(-2), columns = sum.size(-1), tokens = x.values.size(1);
  const int64_t distance = sum.dim() == 3 ? sum.stride(0) : 0;
  const int32_t parts = sum.dim() == 3 ? static_cast<int32_t>(sum.size(0)) : 1;
  // cuBLAS is column-major: sum^T [K, rows] = (x^T [T, K])^T times g^T [T, rows], the one form that Hopper has for FP8.
  Operation operation;
  operation.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  operation.set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  operation.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, x.inverse.const_data_ptr());
  operation.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, g.inverse.const_data_ptr());
  const Layout a(fp8_type(x.values), tokens, columns, x.values.stride(0), parts, 0);
  const Layout b(fp8_type(g.values), tokens, rows, g.values.stride(0), parts, rows * g.values.stride(0));
  const Layout c(CUDA_R_32F, columns, rows, sum.stride(-2), parts, distance);
  const size_t workspace = at::cuda::getCUDABlasLtWorkspaceSize();
  const Preference preference(workspace);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();
  const cublasStatus_t asked = cublasLtMatmulAlgoGetHeuristic(handle, operation.handle, a.handle, b.handle, c.handle,
                                                              c.handle, preference.handle, 1, &found, &count);
  if (asked != CUBLAS_STATUS_SUCCESS || count == 0) return false;
  const float one = 1;
  check(cublasLtMatmul(handle, operation.handle, &one, x.values.const_data_ptr(), a.handle, g.values.const_data_ptr(),
                       b.handle, &one, sum.const_data_ptr(), c.handle, sum.mutable_data_ptr(), c.handle, &found.algo,
                       at::cuda::getCUDABlasLtWorkspace(), workspace, stream_of(sum)),
        "product");
  return true;
}

bool takes_products(const at::Tensor& sum) {
  return is_aligned(sum.const_data_ptr()) && sum.stride(-1) == 1 && sum.stride(-2) % 4 == 0 &&
         (sum.dim() == 2 || sum.stride(0) % 4 == 0);
}

}  // namespace

at::Tensor fp8_largest(const std::vector<at::Tensor>& parts) {
  const at::Tensor largest = at::zeros({1}, parts[0].options().dtype(at::kFloat));
  for (const at::Tensor& part : parts) {
    const at::Tensor x = with_row_stride(part);
    fp8_largest(source_of(x), largest.mutable_data_ptr<float>(), stream_of(x));
  }
  return largest;
}

void fp8_cast(const at::Tensor& part, const Fp8Range& range, const at::Tensor& rows, const at::Tensor& columns) {
  const at::Tensor x = with_row_stride(part);
  Fp8CastCall call;
  call.source = source_of(x);
  call.to = (rows.defined() ? rows : columns).scalar_type() == at::kFloat8_e5m2 ? Fp8Element::e5m2 : Fp8Element::e4m3;
  call.largest = range.largest.const_data_ptr<float>();
  if (range.inverse.defined()) call.inverse = range.inverse.mutable_data_ptr<float>();
  if (rows.defined()) call.by_rows = rows.mutable_data_ptr(), call.by_rows_stride = rows.stride(0);
  if (columns.defined()) {
    call.by_columns = columns.mutable_data_ptr(), call.by_columns_stride = columns.stride(0);
    call.padded_rows = columns.size(1);
  }
  fp8_cast(call, stream_of(x));
}

void accumulate_fp8_product(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x) {
  if (takes_products(sum) && run_product(sum, g, x)) return;
  if (takes_products(sum) && sum.dim() == 3) {
    int64_t part = 0;
    const int64_t rows = sum.size(1);
    while (part < sum.size(0) && run_product(sum[part], {g.values.narrow(0, part * rows, rows), g.inverse}, x)) ++part;
    if (part == sum.size(0)) return;
    if (part > 0)
      fail("FP8 weight gradient: cuBLAS has no kernel for {} x {} x {}", rows, sum.size(2), x.values.size(1));
  }
  const at::Tensor product = at::_scaled_mm(g.values, x.values.t(), g.inverse, x.inverse, {}, {}, at::kFloat, false);
  at::Tensor(sum).add_(product.view(sum.sizes()));
}

}  // namespace hexad::modeling::cuda
