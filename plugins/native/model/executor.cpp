#include "plugins/native/model/executor.hpp"

#include <hexad/services.hpp>

#include "modeling/backend/settings/batch_invariant.hpp"
#include "modeling/error.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "plugins/native/sample/philox.hpp"

namespace hexad::native {

std::vector<WantedDraw> Executor::wanted_draws(const Step& step) {
  std::vector<WantedDraw> wanted;
  int64_t row = 0;
  for (const Chunk& chunk : step.chunks) {
    for (const Sequence* sampler : chunk.samplers) {
      const double u = uniform(sampler->request.seed, static_cast<uint64_t>(sampler->size()));
      wanted.push_back({&sampler->request.sampling, u, row});
    }
    row += chunk.samplers.empty() ? 0 : 1;
  }
  return wanted;
}

void Executor::start(const Step& step, KvCache& cache) {
  const at::Tensor logits = forward(step, cache);
  const std::vector<WantedDraw> wanted = wanted_draws(step);
  const int64_t vocab = logits.size(1);
  draws_.resize(wanted.size());
  modeling::cpu::parallel_for(static_cast<int64_t>(wanted.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      draws_[i] = draw(logits.const_data_ptr<float>() + wanted[i].row * vocab, vocab, *wanted[i].params, wanted[i].u);
  });
}

std::vector<Draw> Executor::finish() { return std::exchange(draws_, {}); }

namespace {

[[noreturn]] void refuse_fp8(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  sdk::fail(
      HEXAD_INVALID_ARGUMENT,
      "native_cfg.precision: got 'fp8', wanted float32, bfloat16 or float16 for model_type '%s' on %s: FP8 runs on "
      "an NVIDIA GPU of compute capability 9.0, in a build with CUDA, for dense models of head_dim 64 or 128 with "
      "hidden_size and intermediate_size in multiples of 64, without biases but those of q, k and v and without a "
      "sliding window; not with native_cfg.deterministic",
      config.family.c_str(), options.device.str().c_str());
}

[[noreturn]] void refuse_batch_invariant(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  std::string obstacle = modeling::batch_invariant_obstacle(config, options.dtype, options.device);
  if (options.fp8) obstacle = "native_cfg.precision is fp8, wanted bfloat16";
  if (options.fp8_cache) obstacle = "native_cfg.kv_cache_dtype is fp8, wanted auto";
  if (!options.replica.alone()) obstacle = "native_cfg.tensor_parallel_size is above 1, wanted 1";
  if (obstacle.empty())
    obstacle =
        "this model is not one of the generator's kernels: wanted no biases but those of q, k and v, and no sliding "
        "window below max_total_sequence_length";
  sdk::fail(HEXAD_UNIMPLEMENTED, "policy.batch_invariant is true, but %s; or set it to false", obstacle.c_str());
}

[[noreturn]] void refuse_ranks(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  modeling::fail(
      "native_cfg.tensor_parallel_size: {} ranks of {} cannot share model_type '{}' with a width of {}, {} heads of {} "
      "and an MLP of {} in {}{}; wanted a dense model, on CPUs in float32 or bfloat16, on GPUs in bfloat16, not "
      "deterministic, with heads of 64 or 128 and each rank's MLP a multiple of 8 wide; or 1",
      options.replica.shard().ranks, options.device.is_cpu() ? "CPUs" : "GPUs", config.family, config.hidden_size,
      config.num_heads, config.head_dim, config.intermediate_size, c10::toString(options.dtype),
      options.deterministic ? ", deterministic" : "");
}

}  // namespace

std::unique_ptr<Executor> make_executor(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  if (options.device.is_cuda()) modeling::cuda::capability(options.device);  // throws where there are no kernels for it
  if (runs_on_cuda(local_config(config, options.replica.shard()), options)) return make_cuda_executor(config, options);
  if (options.batch_invariant) refuse_batch_invariant(config, options);
  if (options.fp8) refuse_fp8(config, options);
  const bool kernels = !config.moe && (options.dtype == at::kFloat || options.dtype == at::kBFloat16);
  if (options.device.is_cpu() && kernels) return make_cpu_executor(config, options);
  if (!options.replica.alone()) refuse_ranks(config, options);
  return make_aten_executor(config, options);
}

}  // namespace hexad::native
