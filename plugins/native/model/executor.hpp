// Runs the model over the rows of one scheduling step.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "plugins/native/model/kv_cache.hpp"
#include "plugins/native/model/weights.hpp"
#include "plugins/native/parallel/part_draws.hpp"
#include "plugins/native/parallel/replica.hpp"
#include "plugins/native/sample/sampler.hpp"
#include "plugins/native/schedule/scheduler.hpp"

namespace hexad::native {

class Executor {
 public:
  virtual ~Executor() = default;
  // Takes another set of weights, complete: copies it, or its memory, or nothing of what lies in places() already. An
  // empty one frees the old (the next call must bring one). No pass is in flight.
  virtual void set_weights(WeightMap weights) = 0;
  // Where an executor that reads weights as they are has them, at the same addresses until they are freed; they may be
  // written to while no set is in force. Empty: a set brings its own memory.
  virtual WeightMap places() { return {}; }
  // The set in force: its memory, or copies of what is kept in another form.
  virtual WeightMap weights() const = 0;
  // Makes the copies of the step, writes the keys and values of every chunk's tokens (and their routes, where these are
  // kept) into the cache and returns fp32 logits [R, vocab] on the CPU: one row for each chunk that has samplers, in
  // the order of the chunks.
  virtual at::Tensor forward(const Step& step, KvCache& cache) = 0;

  // The same, and a draw for every sampler. A GPU may still be at it when start() returns; finish() waits for the pass
  // that was started first and not finished, and returns its draws in the order of chunks and samplers. A token below 0
  // in a sequence is draw ~token of the pass that was started last: what was drawn there, known or not.
  virtual void start(const Step& step, KvCache& cache);
  virtual std::vector<Draw> finish();
  // How many passes may be started before the first is finished.
  virtual int64_t passes_in_flight() const { return 1; }

  virtual KeyLayout key_layout() const { return KeyLayout::columns; }

 protected:
  // Of the step's samplers, in order.
  static std::vector<WantedDraw> wanted_draws(const Step& step);

  std::vector<Draw> draws_;  // what finish() returns
};

struct ExecutorOptions {
  at::ScalarType dtype;
  at::Device device;
  bool deterministic;            // a sample's bits do not depend on what else is in the batch
  int64_t max_length;            // largest position + 1
  int64_t block_size = 16;       // of the cache
  int64_t max_sequences = 256;   // in a pass
  int64_t max_tokens = 2048;     // rows that a pass usually has at most
  bool fp8 = false;              // matrices of layers in FP8 (fp8_rows.hpp), beside `dtype`
  bool fp8_cache = false;        // keys and values in e4m3 (kv_cache.hpp)
  bool batch_invariant = false;  // deterministic, with the bits of training's log-probs (backend/batch_invariant.hpp)
  Replica replica = {};          // the ranks that run the model together
};

// The CPU's own kernels in fp32 and bf16 for dense models, a GPU's in bf16 for what runs_on_cuda() says; ATen
// operators, through modeling's blocks, for everything else, on one rank. All take a cache in e4m3. `config` is of the
// whole model; weights are the parts that weight_parts() gives the rank, and the cache is of its local_config(). Throws
// sdk::Error for FP8 (invalid argument) and batch-invariant passes (unimplemented) without those of a GPU, and for
// these with fp8_cache; modeling::Error for what ranks cannot share.
std::unique_ptr<Executor> make_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);
std::unique_ptr<Executor> make_cpu_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);
std::unique_ptr<Executor> make_aten_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);

// On an NVIDIA GPU (cuda/decode/cuda_executor.cpp): dense models of head_dim 64 or 128 in bf16, without biases but
// those of q, k and v, and without a sliding window shorter than the longest sequence; deterministic and
// batch-invariant ones (invariant_decoder.hpp) with sizes that are multiples of 8, and not with fp8 or fp8_cache; with
// fp8, of sizes in multiples of 64. False in a build without CUDA.
bool runs_on_cuda(const modeling::ModelConfig& config, const ExecutorOptions& options);
std::unique_ptr<Executor> make_cuda_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);

}  // namespace hexad::native
