// The decoder on an NVIDIA GPU (sm_90) in bf16: fused kernels, products by cuBLAS, paged attention by FlashInfer's
// kernels, CUDA graphs for passes that only decode, and sampling on the device. The residual stream is fp32, as in
// training. Passes are enqueued while the one before runs: a token that the host does not know yet is read from where
// it was drawn.
//
// With fp8 the products of layers are those of fp8_linear.hpp: passes of more than kMostSkinnyRows rows cast what a
// product reads, row by row; in those of fewer the weights alone are in FP8.
#include <ATen/Functions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <thread>

#include "modeling/backend/settings/batch_invariant.hpp"
#include "plugins/native/cuda/check.hpp"
#include "plugins/native/cuda/decode/decode_graphs.hpp"
#include "plugins/native/cuda/decode/invariant_decoder.hpp"
#include "plugins/native/cuda/norm.hpp"
#include "plugins/native/model/executor.hpp"
#include "plugins/native/model/weight_store.hpp"
#include "plugins/native/sample/philox.hpp"

namespace hexad::native {
namespace {

using namespace cuda;

// The draws of a pass on their way to the host.
class DrawsOnTheWay {
 public:
  explicit DrawsOnTheWay(int64_t most) {
    const auto options = at::TensorOptions().pinned_memory(true);
    tokens_ = at::empty({most}, options.dtype(at::kInt));
    logprobs_ = at::empty({most}, options.dtype(at::kFloat));
    check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming | cudaEventBlockingSync), "event");
  }
  ~DrawsOnTheWay() {
    cudaEventSynchronize(done_);
    cudaEventDestroy(done_);
  }
  DrawsOnTheWay(const DrawsOnTheWay&) = delete;
  DrawsOnTheWay& operator=(const DrawsOnTheWay&) = delete;

  void fetch(const Decoder& decoder, int64_t count, cudaStream_t stream) {
    count_ = count;
    if (count > 0) {
      check(cudaMemcpyAsync(tokens_.data_ptr(), decoder.tokens(), 4 * size_t(count), cudaMemcpyDeviceToHost, stream),
            "copy of draws");
      check(
          cudaMemcpyAsync(logprobs_.data_ptr(), decoder.logprobs(), 4 * size_t(count), cudaMemcpyDeviceToHost, stream),
          "copy of draws");
    }
    check(cudaEventRecord(done_, stream), "event");
  }
  std::vector<Draw> wait(const Replica& replica) const {
    if (!replica.alone()) wait_at_most(replica);
    check(cudaEventSynchronize(done_), "a pass of the model");
    std::vector<Draw> draws;
    for (int64_t i = 0; i < count_; ++i)
      draws.push_back({tokens_.const_data_ptr<int32_t>()[i], logprobs_.const_data_ptr<float>()[i]});
    return draws;
  }

 private:
  // A pass of several ranks never ends when one of them is lost.
  void wait_at_most(const Replica& replica) const {
    const auto deadline = std::chrono::steady_clock::now() + replica.timeout();
    while (cudaEventQuery(done_) == cudaErrorNotReady) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw c10::DistBackendError(
            {__func__, __FILE__, __LINE__},
            fmt::format("a pass of the model over {} did not end within {} s: one of them is lost, or does something "
                        "else",
                        replica.name(), replica.timeout().count() / 1000));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    cudaGetLastError();  // "not ready" is kept as an error, for the next launch
  }

  at::Tensor tokens_, logprobs_;
  cudaEvent_t done_ = nullptr;
  int64_t count_ = 0;
};

// One set of kernels serves both: what does not depend on the batch can be what training has.
bool is_invariant(const ExecutorOptions& options) { return options.deterministic || options.batch_invariant; }

std::unique_ptr<Decoder> make_decoder(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  if (is_invariant(options)) return std::make_unique<InvariantDecoder>(config, options);
  return std::make_unique<Decoder>(config, options);
}

class CudaExecutor : public Executor {
 public:
  CudaExecutor(const modeling::ModelConfig& config, const ExecutorOptions& options)
      : CudaExecutor(config, local_config(config, options.replica.shard()), options) {}

  // Graphs outlive new values at the same places.
  void set_weights(WeightMap weights) override {
    weights_ = weights.empty() ? WeightMap() : store_.settle(weights);
    decoder_->set_weights(weights_);
    if (!weights_.empty()) return;
    graphs_.clear();
    store_.release();
    decoder_->release();
    draws_.clear();
    arrays_.reset();
  }
  WeightMap places() override { return store_.places(); }
  WeightMap weights() const override { return weights_; }

  at::Tensor forward(const Step& step, KvCache& cache) override {
    prepare(step, cache);
    const PassSizes sizes = write_rows(step, cache, /*draws=*/false);
    arrays_->upload(plan_, sizes, sizes, stream());
    decoder_->run(sizes, *arrays_, cache);
    return decoder_->logits(sizes.logit_rows).to(at::kCPU);
  }

  void start(const Step& step, KvCache& cache) override {
    try {
      enqueue(step, cache);
    } catch (...) {
      cudaGetLastError();  // the runtime keeps an error, and tells it again of the next launch
      throw;
    }
  }

  std::vector<Draw> finish() override {
    const size_t turn = in_flight_.front();
    in_flight_.pop_front();
    return draws_[turn]->wait(options_.replica);
  }

  int64_t passes_in_flight() const override { return 2; }
  KeyLayout key_layout() const override { return KeyLayout::rows; }

 private:
  CudaExecutor(const modeling::ModelConfig& config, const modeling::ModelConfig& local, const ExecutorOptions& options)
      : options_(options),
        shape_{local.num_heads, local.num_kv_heads, options.block_size},
        store_(config, options.dtype, options.device, options.fp8, options.replica.shard()),
        decoder_(make_decoder(local, options)) {
    if (is_invariant(options)) shape_.carried_tile = kCarriedTile;
  }

  void enqueue(const Step& step, KvCache& cache) {
    prepare(step, cache);
    const PassSizes sizes = write_rows(step, cache, /*draws=*/true);
    const bool in_graph = only_decodes(step) && stream() != nullptr;  // the default stream cannot be captured
    const PassSizes padded = in_graph ? DecodeGraphs::padded(shape_, limits().sequences, sizes) : sizes;
    arrays_->upload(plan_, sizes, padded, stream());
    const auto run = [&] { decoder_->run(padded, *arrays_, cache); };
    if (in_graph) {
      graphs_.launch(padded, run, stream());
    } else {
      run();
    }
    draws_[turn_]->fetch(*decoder_, sizes.draws, stream());
    in_flight_.push_back(turn_);
    turn_ ^= 1;
  }

  cudaStream_t stream() const { return c10::cuda::getCurrentCUDAStream(options_.device.index()); }
  const ArrayLimits& limits() const { return arrays_->limits(); }

  // Every chunk is one row that draws once: the shape of a CUDA graph.
  static bool only_decodes(const Step& step) {
    return std::all_of(step.chunks.begin(), step.chunks.end(),
                       [](const Chunk& chunk) { return chunk.count == 1 && chunk.samplers.size() == 1; });
  }

  // Room for the pass, and the copies of its step. Graphs go when an address changes that they hold.
  void prepare(const Step& step, KvCache& cache) {
    int64_t rows = 0;
    for (const Chunk& chunk : step.chunks) rows += chunk.count;
    if (!arrays_ || rows > limits().rows) {
      check(cudaStreamSynchronize(stream()), "a pass of the model");
      graphs_.clear();
      const int64_t blocks = (options_.max_length + options_.block_size - 1) / options_.block_size;
      const ArrayLimits limits{std::max({rows, options_.max_tokens, options_.max_sequences}), options_.max_sequences,
                               blocks, shape_};
      arrays_.reset();
      decoder_->allocate(limits);
      while (draws_.size() < 2) draws_.push_back(std::make_unique<DrawsOnTheWay>(options_.max_sequences));
      arrays_.emplace(limits, options_.device);  // last: with it all is there
    }
    // Ranks whose passes meet keep or make graphs together, and each one's addresses are its own.
    const bool another = !options_.replica.alone() && cache.allocations() != cache_allocations_;
    if (another || cache.keys(0).const_data_ptr() != cache_address_) {
      graphs_.clear();
      cache_address_ = cache.keys(0).const_data_ptr();
      cache_allocations_ = cache.allocations();
    }
    cache.copy(step.copies);
  }

  // Fills the arrays and plan_. Rows of one token come first; logits and draws keep the order of the chunks.
  PassSizes write_rows(const Step& step, const KvCache& cache, bool draws) {
    const PassArrays::Host host = arrays_->begin();
    const int32_t block_size = static_cast<int32_t>(cache.block_size());
    decodes_.clear(), prompts_.clear();
    PassSizes sizes;
    sizes.joins = !draws && !options_.replica.alone();
    std::vector<int64_t> last_row(step.chunks.size());
    for (const bool decoding : {true, false}) {
      for (size_t i = 0; i < step.chunks.size(); ++i) {
        const Chunk& chunk = step.chunks[i];
        if ((chunk.count == 1) != decoding) continue;
        const int32_t* blocks = chunk.sequence->blocks.data();
        const auto length = static_cast<int32_t>(chunk.start + chunk.count);
        for (auto position = static_cast<int32_t>(chunk.start); position < length; ++position, ++sizes.rows) {
          host.ids[sizes.rows] = chunk.sequence->tokens[position];
          host.positions[sizes.rows] = position;
          host.slots[sizes.rows] = blocks[position / block_size] * block_size + position % block_size;
        }
        last_row[i] = sizes.rows - 1;
        if (decoding) {
          decodes_.push_back({blocks, length});
        } else {
          prompts_.push_back({blocks, length, static_cast<int32_t>(chunk.count)});
        }
      }
    }
    for (size_t i = 0; i < step.chunks.size(); ++i) {
      if (step.chunks[i].samplers.empty()) continue;
      const auto row = static_cast<int32_t>(sizes.logit_rows++);
      host.logit_rows[row] = static_cast<int32_t>(last_row[i]);
      if (!draws) continue;
      for (const Sequence* sampler : step.chunks[i].samplers) {
        host.tasks[sizes.draws++] = task_of(*sampler, row);
        sizes.joins |= !options_.replica.alone() && sampler->request.sampling.filtered();
      }
    }
    plan_attention(shape_, decodes_, prompts_, plan_);
    sizes.decode_rows = static_cast<int64_t>(decodes_.size());
    sizes.own_items = plan_.own.items(), sizes.shared_items = plan_.shared.items();
    sizes.prompt_requests = plan_.prompt.requests(), sizes.prompt_items = plan_.prompt.items();
    return sizes;
  }

  static DrawTask task_of(const Sequence& sequence, int32_t row) {
    const SamplingParams& sampling = sequence.request.sampling;
    return {.u = uniform(sequence.request.seed, static_cast<uint64_t>(sequence.size())),
            .temperature = sampling.temperature,
            .top_p = sampling.top_p,
            .min_p = sampling.min_p,
            .top_k = static_cast<int32_t>(std::min<int64_t>(sampling.top_k, kMaxVocab)),
            .row = row};
  }

  ExecutorOptions options_;
  PlanShape shape_;
  WeightStore store_;
  WeightMap weights_;
  std::unique_ptr<Decoder> decoder_;
  DecodeGraphs graphs_;
  std::optional<PassArrays> arrays_;
  const void* cache_address_ = nullptr;
  int64_t cache_allocations_ = 0;
  std::vector<DecodeRow> decodes_;
  std::vector<PromptRows> prompts_;
  AttentionPlan plan_;
  std::vector<std::unique_ptr<DrawsOnTheWay>> draws_;  // of two passes in turn
  std::deque<size_t> in_flight_;
  size_t turn_ = 0;
};

}  // namespace

bool runs_on_cuda(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  if (!options.device.is_cuda() || options.dtype != at::kBFloat16) return false;
  if (is_invariant(options) && (options.fp8 || options.fp8_cache || !options.replica.alone() ||
                                !modeling::batch_invariant_obstacle(config, options.dtype, options.device).empty()))
    return false;
  const bool dense = !config.moe && !config.mla, plain = !config.output_bias && !config.mlp_bias;
  const bool dims = (config.head_dim == 64 || config.head_dim == 128) && config.hidden_size % 8 == 0 &&
                    config.hidden_size <= kMaxHidden && config.intermediate_size % 8 == 0 &&
                    config.vocab_size <= kMaxVocab;
  const bool whole = std::all_of(config.sliding_window.begin(), config.sliding_window.end(),
                                 [&](int64_t window) { return window == 0 || window >= options.max_length; });
  const bool fp8_dims = config.hidden_size % 64 == 0 && config.intermediate_size % 64 == 0 &&
                        config.intermediate_size <= kMostFp8Width &&
                        config.num_heads * config.head_dim <= kMostFp8Width;
  int major = 0;  // whose FP8 products LibTorch has with a scale for each row
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, options.device.index()), "device");
  return dense && plain && dims && (!options.fp8 || (fp8_dims && major == 9)) && whole;
}

std::unique_ptr<Executor> make_cuda_executor(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  return std::make_unique<CudaExecutor>(config, options);
}

}  // namespace hexad::native
