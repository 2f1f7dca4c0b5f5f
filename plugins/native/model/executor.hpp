// Runs the model over the rows of one scheduling step.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "plugins/native/model/kv_cache.hpp"
#include "plugins/native/model/weights.hpp"
#include "plugins/native/schedule/scheduler.hpp"

namespace hexad::native {

class Executor {
 public:
  virtual ~Executor() = default;
  // Takes another set of weights, complete; an empty one frees the old (the next call must bring one).
  virtual void set_weights(WeightMap weights) = 0;
  // Writes the keys and values of every chunk's tokens (and their routes, where these are kept) into the cache and
  // returns fp32 logits [R, vocab] on the CPU: one row for each chunk that has samplers, in the order of the chunks. The
  // copies of the step have been made.
  virtual at::Tensor forward(const Step& step, KvCache& cache) = 0;
};

struct ExecutorOptions {
  at::ScalarType dtype;
  at::Device device;
  bool deterministic;
  int64_t max_length;  // largest position + 1
};

// The CPU's own kernels in fp32 and bf16 for dense models; ATen operators, through modeling's blocks, for everything
// else.
std::unique_ptr<Executor> make_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);
std::unique_ptr<Executor> make_cpu_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);
std::unique_ptr<Executor> make_aten_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);

}  // namespace hexad::native
