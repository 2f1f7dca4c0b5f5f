// Builds without CUDA: everything runs elsewhere.
#include <stdexcept>

#include "plugins/native/cuda/decode/pool.hpp"
#include "plugins/native/cuda/fp8/fp8_linear.hpp"
#include "plugins/native/model/executor.hpp"

namespace hexad::native {
namespace {

[[noreturn]] void refuse() {
  throw std::logic_error("this build has no CUDA: configure with -DHEXAD_CUDA=ON (preset cuda)");
}

}  // namespace

bool runs_on_cuda(const modeling::ModelConfig&, const ExecutorOptions&) { return false; }
std::unique_ptr<Executor> make_cuda_executor(const modeling::ModelConfig&, const ExecutorOptions&) { refuse(); }
at::Tensor cuda::pool_tensor(at::IntArrayRef, at::ScalarType, at::Device, const char*) { refuse(); }
void cuda::cast_rows(const at::Tensor&, const at::Tensor&, const at::Tensor&) { refuse(); }
void cuda::copy_pool_blocks(const at::Tensor&, const std::vector<std::pair<int32_t, int32_t>>&) { refuse(); }

}  // namespace hexad::native
