// The decoder on a CPU in its own kernels: the same function as modeling::forward_hidden with a cache, row by row the
// same whatever the batch. Weights have the model's dtype, as has the cache where it is not in e4m3; activations are
// fp32 also in bf16: two computations that round alike, and sum in another order, soon round independently, and differ
// by more than one of them does from the exact result.
#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <type_traits>

#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/cpu/row_kernels.hpp"
#include "modeling/op/rope.hpp"
#include "plugins/native/cpu/attention.hpp"
#include "plugins/native/cpu/gemm.hpp"
#include "plugins/native/model/cpu_weights.hpp"
#include "plugins/native/model/executor.hpp"

namespace hexad::native {
namespace {

// Activations of a pass, [rows, width] each; they only ever grow.
struct Buffers {
  std::vector<float> hidden, normed, partial, q, k, v, attended, gate, up, cos, sin;
  void resize(const modeling::ModelConfig& c, int64_t rows) {
    const auto grow = [&](std::vector<float>& buffer, int64_t width) {
      if (buffer.size() < size_t(rows * width)) buffer.resize(rows * width);
    };
    grow(hidden, c.hidden_size), grow(normed, c.hidden_size), grow(partial, c.hidden_size);
    grow(q, c.num_heads * c.head_dim), grow(attended, c.num_heads * c.head_dim);
    grow(k, c.num_kv_heads * c.head_dim), grow(v, c.num_kv_heads * c.head_dim);
    grow(gate, c.intermediate_size), grow(up, c.intermediate_size);
    grow(cos, c.head_dim / 2), grow(sin, c.head_dim / 2);
  }
};

// The rows of a step, with what is known before any arithmetic.
struct Rows {
  std::vector<int64_t> ids, positions, sampled;
  std::vector<cpu::SequenceRows> sequences;

  explicit Rows(const Step& step) {
    for (const Chunk& chunk : step.chunks) {
      sequences.push_back({count(), chunk.start, chunk.count, chunk.sequence->blocks.data()});
      for (int64_t position = chunk.start; position < chunk.start + chunk.count; ++position) {
        ids.push_back(chunk.sequence->tokens[position]);
        positions.push_back(position);
      }
      if (!chunk.samplers.empty()) sampled.push_back(count() - 1);
    }
  }
  int64_t count() const { return static_cast<int64_t>(ids.size()); }
};

template <typename T>  // float or cpu::BFloat16
class CpuExecutor : public Executor {
 public:
  CpuExecutor(const modeling::ModelConfig& config, const ExecutorOptions& options)
      : replica_(options.replica),
        config_(local_config(config, replica_.shard())),
        parts_(weight_parts(config, replica_.shard())) {
    // Angles of every position, once: a row's own, whatever rows surround it.
    const auto rope = modeling::make_rope(config.rope, config.head_dim, at::arange(options.max_length, at::kLong));
    cos_ = rope.cos.contiguous(), sin_ = rope.sin.contiguous();
  }

  void set_weights(WeightMap weights) override {
    weights_.reset();
    if (!weights.empty()) weights_ = std::make_unique<CpuWeights>(config_, std::move(weights), replica_.shard());
  }
  WeightMap weights() const override {
    constexpr auto kType = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
    return weights_ ? weights_->unpacked(parts_, kType) : WeightMap();
  }

  at::Tensor forward(const Step& step, KvCache& cache) override {
    const at::Tensor own = own_logits(step, cache);
    if (replica_.alone()) return own;
    at::Tensor logits = at::empty({own.size(0), config_.vocab_size}, at::kFloat);
    replica_.join_columns(own, {}, logits);
    return logits;
  }

  // Ranks exchange rows of logits only where a filter has to see them.
  void start(const Step& step, KvCache& cache) override {
    const std::vector<WantedDraw> wanted = wanted_draws(step);
    const bool filtered = std::ranges::any_of(wanted, [](const WantedDraw& draw) { return draw.params->filtered(); });
    if (replica_.alone() || filtered) return Executor::start(step, cache);
    const int64_t first = head_rows(config_, replica_.shard()).begin;
    draws_ = draw_over_ranks(own_logits(step, cache), first, wanted, replica_);
  }

 private:
  // [R, this rank's columns], at the beginning of memory that has room for the widest part's.
  at::Tensor own_logits(const Step& step, KvCache& cache) {
    cache.copy(step.copies);
    const Rows rows(step);
    buffers_.resize(config_, rows.count());
    embed(rows);
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
      attention_part(layer, rows, cache);
      mlp_part(weights_->layers[layer], rows.count());
    }
    return head_logits(rows);
  }

  void embed(const Rows& rows) {
    const int64_t width = config_.hidden_size, half = config_.head_dim / 2;
    const T* table = static_cast<const T*>(weights_->embedding);
    for (int64_t row = 0; row < rows.count(); ++row) {
      cpu::unpack_row(table, rows.ids[row], width, buffers_.hidden.data() + row * width);
      const int64_t angle = rows.positions[row] * half;
      std::copy_n(cos_.const_data_ptr<float>() + angle, half, buffers_.cos.data() + row * half);
      std::copy_n(sin_.const_data_ptr<float>() + angle, half, buffers_.sin.data() + row * half);
    }
  }

  // y = RMS norm of x over rows of `width`; in place where they are the same.
  void norm(const float* x, const float* weight, float* y, int64_t rows, int64_t width) {
    modeling::cpu::parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
      std::vector<float> inverse(end - begin);
      modeling::cpu::rms_norm_forward(x + begin * width, weight, y + begin * width, inverse.data(), end - begin, width,
                                      float(config_.rms_norm_eps));
    });
  }

  void rotate(float* x, int64_t rows, int64_t heads) {
    const int64_t half = config_.head_dim / 2;
    modeling::cpu::parallel_for(rows, 64, [&](int64_t begin, int64_t end) {
      float* part = x + begin * heads * 2 * half;
      modeling::cpu::rope_rotate(part, buffers_.cos.data() + begin * half, buffers_.sin.data() + begin * half, part,
                                 end - begin, heads, half, 1.0f);
    });
  }

  void attention_part(int64_t layer, const Rows& rows, KvCache& cache) {
    const CpuLayer& w = weights_->layers[layer];
    Buffers& b = buffers_;
    const int64_t count = rows.count(), dim = config_.head_dim, hidden = config_.hidden_size;
    const int64_t q_width = config_.num_heads * dim, kv_width = config_.num_kv_heads * dim;
    norm(b.hidden.data(), w.input_norm, b.normed.data(), count, hidden);
    const cpu::Product qkv[] = {{w.q, w.q_bias, b.q.data(), q_width, false},
                                {w.k, w.k_bias, b.k.data(), kv_width, false},
                                {w.v, w.v_bias, b.v.data(), kv_width, false}};
    cpu::multiply<T>(b.normed.data(), count, hidden, qkv);
    if (config_.qk_norm) {
      norm(b.q.data(), w.q_norm, b.q.data(), count * config_.num_heads, dim);
      norm(b.k.data(), w.k_norm, b.k.data(), count * config_.num_kv_heads, dim);
    }
    rotate(b.q.data(), count, config_.num_heads);
    rotate(b.k.data(), count, config_.num_kv_heads);
    cache.dtype() == at::kFloat8_e4m3fn ? attend<cpu::Float8>(layer, rows, cache) : attend<T>(layer, rows, cache);
    add_product(b.attended.data(), count, q_width, w.o, w.o_bias);
  }

  template <typename C>  // what the cache holds
  void attend(int64_t layer, const Rows& rows, KvCache& cache) {
    const cpu::AttentionShape shape{config_.num_heads, config_.num_kv_heads, config_.head_dim, cache.block_size(),
                                    config_.sliding_window[layer]};
    const cpu::LayerCache<C> pages{static_cast<C*>(cache.keys(layer).data_ptr()),
                                   static_cast<C*>(cache.values(layer).data_ptr())};
    cpu::write_cache<C>(shape, rows.sequences, buffers_.k.data(), buffers_.v.data(), pages);
    cpu::attend<C>(shape, rows.sequences, buffers_.q.data(), buffers_.attended.data(), pages);
  }

  // hidden += x [count, width] * weight^T + bias, over the columns of the weight that all ranks have.
  void add_product(const float* x, int64_t count, int64_t width, const void* weight, const float* bias) {
    const int64_t hidden = config_.hidden_size;
    float* const sum = buffers_.hidden.data();
    float* const partial = replica_.alone() ? sum : buffers_.partial.data();
    const cpu::Product out[] = {{weight, bias, partial, hidden, replica_.alone()}};
    cpu::multiply<T>(x, count, width, out);
    if (replica_.alone()) return;
    replica_.sum(at::from_blob(partial, {count, hidden}, at::kFloat));
    modeling::cpu::parallel_for(count * hidden, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum[i] += partial[i];
    });
  }

  void mlp_part(const CpuLayer& w, int64_t count) {
    Buffers& b = buffers_;
    const int64_t hidden = config_.hidden_size, width = config_.intermediate_size;
    norm(b.hidden.data(), w.post_attention_norm, b.normed.data(), count, hidden);
    const cpu::Product gate_up[] = {{w.gate, w.gate_bias, b.gate.data(), width, false},
                                    {w.up, w.up_bias, b.up.data(), width, false}};
    cpu::multiply<T>(b.normed.data(), count, hidden, gate_up);
    modeling::cpu::parallel_for(count, 16, [&](int64_t begin, int64_t end) {
      // Row by row: where the kernel's vectors begin must not depend on the rows before.
      for (int64_t row = begin; row < end; ++row) {
        float* gate = b.gate.data() + row * width;
        modeling::cpu::swiglu_forward(gate, b.up.data() + row * width, gate, width);
      }
    });
    add_product(b.gate.data(), count, width, w.down, w.down_bias);
  }

  at::Tensor head_logits(const Rows& rows) {
    const int64_t count = static_cast<int64_t>(rows.sampled.size()), width = config_.hidden_size;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(buffers_.hidden.data() + rows.sampled[i] * width, width, buffers_.normed.data() + i * width);
    }
    norm(buffers_.normed.data(), weights_->final_norm, buffers_.normed.data(), count, width);
    const int64_t columns = head_rows(config_, replica_.shard()).size();
    const int64_t widest = modeling::chunk_length(config_.vocab_size, replica_.shard().ranks);
    if (!logits_.defined() || logits_.numel() < count * widest) logits_ = at::empty({count * widest}, at::kFloat);
    const cpu::Product head[] = {{weights_->head, nullptr, logits_.data_ptr<float>(), columns, false}};
    cpu::multiply<T>(buffers_.normed.data(), count, width, head);
    return logits_.narrow(0, 0, count * columns).view({count, columns});
  }

  Replica replica_;
  modeling::ModelConfig config_;  // of this rank
  std::vector<WeightPart> parts_;
  at::Tensor cos_, sin_;  // [max_length, head_dim / 2]
  std::unique_ptr<CpuWeights> weights_;
  Buffers buffers_;
  at::Tensor logits_;
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(const modeling::ModelConfig& config, const ExecutorOptions& options) {
  if (options.dtype == at::kFloat) return std::make_unique<CpuExecutor<float>>(config, options);
  return std::make_unique<CpuExecutor<cpu::BFloat16>>(config, options);
}

}  // namespace hexad::native
