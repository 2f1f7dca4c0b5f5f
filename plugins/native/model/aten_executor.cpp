// The executor in ATen operators: modeling's blocks over the paged cache, on any device.
#include <ATen/Functions.h>

#include "modeling/family/transformer.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/op/host_copy.hpp"
#include "modeling/op/linear.hpp"
#include "plugins/native/model/executor.hpp"
#include "plugins/native/model/paged_attention.hpp"
#include "plugins/native/model/weight_store.hpp"

namespace hexad::native {
namespace {

// Deterministic mode: rows of a GEMM. Below it a row's result may depend on how many rows there are.
constexpr int64_t kRowTile = 64;

// fp32 logits [R, vocab], formed as in modeling's log-prob head: not rounded to the model's dtype.
at::Tensor head_logits(const at::Tensor& hidden, const at::Tensor& head, int64_t row_tile) {
  if (hidden.scalar_type() == at::kFloat) return modeling::apply_linear(hidden, head, {}, row_tile);
  if (hidden.is_cpu()) return modeling::apply_linear(hidden.to(at::kFloat), head.to(at::kFloat), {}, row_tile);
  const int64_t rows = hidden.size(0), tile = row_tile > 0 ? row_tile : std::max<int64_t>(1, rows);
  std::vector<at::Tensor> parts{at::empty({0, head.size(0)}, hidden.options().dtype(at::kFloat))};
  for (int64_t begin = 0; begin < rows; begin += tile) {
    const at::Tensor part = hidden.slice(0, begin, std::min(rows, begin + tile));
    const int64_t count = part.size(0);
    const at::Tensor whole = count < tile ? at::constant_pad_nd(part, {0, 0, 0, tile - count}) : part;
    parts.push_back(at::mm(whole, head.t(), at::kFloat).slice(0, 0, count));
  }
  return at::cat(parts, 0);
}

// Beside the keys and values of the same rows; one copy from the device a pass.
void keep_routes(const Step& step, KvCache& cache, const std::vector<at::Tensor>& chosen) {
  if (chosen.empty()) return;
  std::vector<int64_t> slots;
  for (const Chunk& chunk : step.chunks)
    for (int64_t position = chunk.start; position < chunk.start + chunk.count; ++position)
      slots.push_back(chunk.sequence->blocks[position / cache.block_size()] * cache.block_size() +
                      position % cache.block_size());
  const at::Tensor experts = at::stack(chosen, 1).to(at::kShort).cpu();
  cache.routes().flatten(0, 1).index_copy_(0, at::tensor(slots, at::kLong), experts);
}

class AtenExecutor : public Executor {
 public:
  AtenExecutor(const modeling::ModelConfig& config, const ExecutorOptions& options)
      : config_(config),
        device_(options.device),
        deterministic_(options.deterministic),
        block_{.linear = options.deterministic ? kRowTile : 0},
        store_(config, options.dtype, options.device) {}

  void set_weights(WeightMap weights) override {
    weights_.clear();
    weights.empty() ? store_.release() : void(weights_ = store_.settle(weights));
  }
  WeightMap places() override { return store_.places(); }
  WeightMap weights() const override { return weights_; }

  at::Tensor forward(const Step& step, KvCache& cache) override {
    cache.copy(step.copies);
    std::vector<int64_t> ids, positions, sampled;
    for (const Chunk& chunk : step.chunks) {
      for (int64_t position = chunk.start; position < chunk.start + chunk.count; ++position) {
        ids.push_back(chunk.sequence->tokens[position]);
        positions.push_back(position);
      }
      if (!chunk.samplers.empty()) sampled.push_back(static_cast<int64_t>(ids.size()) - 1);
    }
    PagedAttention attention(config_, step, cache, deterministic_);
    const auto on_device = [&](const std::vector<int64_t>& values) { return modeling::on_device(values, device_); };
    const auto lookup = [&](const std::string& name) { return weights_.at(name); };
    std::vector<at::Tensor> chosen;  // by the routers, int64 [T, k] a layer with experts
    const auto keep = [&](const at::Tensor& experts) { chosen.push_back(experts); };
    const modeling::MoeRuns runs = [&](int64_t) { return modeling::MoeRun{.chosen = keep}; };
    const at::Tensor hidden = modeling::forward_hidden(config_, lookup, on_device(ids), on_device(positions), attention,
                                                       block_, cache.routes().defined() ? runs : modeling::MoeRuns());
    keep_routes(step, cache, chosen);
    const at::Tensor last = hidden.index_select(0, on_device(sampled));
    const at::Tensor head = weights_.at(modeling::head_weight_name(config_));
    return head_logits(last, head, block_.linear.row_tile).to(at::kCPU).contiguous();
  }

 private:
  modeling::ModelConfig config_;
  at::Device device_;
  bool deterministic_;
  modeling::BlockOptions block_;
  WeightStore store_;
  WeightMap weights_;
};

}  // namespace

std::unique_ptr<Executor> make_aten_executor(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  return std::make_unique<AtenExecutor>(config, options);
}

}  // namespace hexad::native
