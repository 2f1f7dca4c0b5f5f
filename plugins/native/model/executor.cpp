#include "plugins/native/model/executor.hpp"

#include "plugins/native/cpu/parallel.hpp"
#include "plugins/native/cuda/cuda_executor.hpp"
#include "plugins/native/sample/philox.hpp"

namespace hexad::native {

void Executor::start(const Step& step, KvCache& cache) {
  const at::Tensor logits = forward(step, cache);
  struct Wanted {
    const Sequence* sequence;
    const float* row;
  };
  std::vector<Wanted> wanted;
  const int64_t vocab = logits.size(1);
  const float* row = logits.const_data_ptr<float>();
  for (const Chunk& chunk : step.chunks) {
    for (const Sequence* sampler : chunk.samplers) wanted.push_back({sampler, row});
    row += chunk.samplers.empty() ? 0 : vocab;
  }
  draws_.resize(wanted.size());
  cpu::parallel_for(static_cast<int64_t>(wanted.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Sequence& sequence = *wanted[i].sequence;
      const double u = uniform(sequence.request.seed, static_cast<uint64_t>(sequence.size()));
      draws_[i] = draw(wanted[i].row, vocab, sequence.request.sampling, u);
    }
  });
}

std::vector<Draw> Executor::finish() { return std::exchange(draws_, {}); }

std::unique_ptr<Executor> make_executor(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  if (runs_on_cuda(config, options)) return make_cuda_executor(config, options);
  const bool kernels = !config.moe && (options.dtype == at::kFloat || options.dtype == at::kBFloat16);
  return options.device.is_cpu() && kernels ? make_cpu_executor(config, options) : make_aten_executor(config, options);
}

}  // namespace hexad::native
