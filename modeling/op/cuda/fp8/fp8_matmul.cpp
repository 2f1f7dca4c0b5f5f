#include "modeling/op/cuda/fp8/fp8_matmul.hpp"

#include <ATen/cuda/CUDAContextLight.h>
#include <cublasLt.h>

#include "modeling/error.hpp"
#include "modeling/op/cuda/binding.hpp"

namespace hexad::modeling::cuda {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("FP8 product: {}: {}", what, cublasLtGetStatusString(status));
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
    const uint32_t aligned = 16;  // bytes: what the casts see to; kernels expect more unless they are told
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      check(cublasLtMatmulPreferenceSetAttribute(handle, which, &aligned, sizeof aligned), "preference");
  }
};

cudaDataType_t fp8_type(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat8_e5m2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
}

cudaDataType_t type_of(const at::Tensor& x) {
  switch (element_of(x)) {
    case Element::f32: return CUDA_R_32F;
    case Element::bf16: return CUDA_R_16BF;
    default: return CUDA_R_16F;
  }
}

cublasLtMatmulMatrixScale_t scale_mode(const Fp8Matrix& x) {
  switch (x.scaling) {
    case Fp8Scaling::strips: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case Fp8Scaling::blocks: return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    default: return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  }
}

}  // namespace

bool fp8_matmul(const at::Tensor& out, const Fp8Matrix& a, const Fp8Matrix& b, const Fp8MatmulOptions& options) {
  const int64_t rows = out.size(-2), columns = out.size(-1), depth = b.values.size(1);
  if (a.scaling != Fp8Scaling::tensor && (rows % 4 != 0 || columns % 4 != 0 || out.dim() != 2)) return false;
  const int64_t distance = out.dim() == 3 ? out.stride(0) : 0;
  const int32_t parts = out.dim() == 3 ? static_cast<int32_t>(out.size(0)) : 1;
  // cuBLAS is column-major: out^T [N, M] = (b^T [K, N])^T times a^T [K, M], the one form that Hopper has for FP8.
  Operation operation;
  operation.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  operation.set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  operation.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b.inverse.const_data_ptr());
  operation.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a.inverse.const_data_ptr());
  operation.set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scale_mode(b));
  operation.set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scale_mode(a));
  if (options.bias.defined()) {
    operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    operation.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, options.bias.const_data_ptr());
    operation.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(options.bias));
  }
  const Layout left(fp8_type(b.values), depth, columns, b.values.stride(0), parts, 0);
  const Layout right(fp8_type(a.values), depth, rows, a.values.stride(0), parts, rows * a.values.stride(0));
  const Layout result(type_of(out), columns, rows, out.stride(-2), parts, distance);
  const size_t workspace = at::cuda::getCUDABlasLtWorkspaceSize();
  const Preference preference(workspace);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();
  const cublasStatus_t asked =
      cublasLtMatmulAlgoGetHeuristic(handle, operation.handle, left.handle, right.handle, result.handle, result.handle,
                                     preference.handle, 1, &found, &count);
  if (asked != CUBLAS_STATUS_SUCCESS || count == 0) return false;
  const float one = 1, before = options.accumulate ? 1 : 0;
  check(
      cublasLtMatmul(handle, operation.handle, &one, b.values.const_data_ptr(), left.handle, a.values.const_data_ptr(),
                     right.handle, &before, out.const_data_ptr(), result.handle, out.mutable_data_ptr(), result.handle,
                     &found.algo, at::cuda::getCUDABlasLtWorkspace(), workspace, stream_of(out)),
      "product");
  return true;
}

size_t cublas_version() { return cublasLtGetVersion(); }

}  // namespace hexad::modeling::cuda
