#include "plugins/native/cuda/decoder.hpp"

#include <ATen/Functions.h>
#include <c10/cuda/CUDAStream.h>

#include "modeling/op/rope.hpp"
#include "plugins/native/cuda/elementwise.hpp"
#include "plugins/native/cuda/norm.hpp"
#include "plugins/native/cuda/pool.hpp"
#include "plugins/native/cuda/rope_append.hpp"
#include "plugins/native/cuda/skinny.hpp"

namespace hexad::native::cuda {
namespace {

__nv_bfloat16* bf16(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<__nv_bfloat16*>(tensor.data_ptr()) : nullptr;
}

// out = x * weight^T + bias in bf16, or without a bias; `out` in fp32: logits, without one.
void multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor out,
              cudaStream_t stream) {
  const int rows = int(x.size(0)), in = int(weight.size(1)), columns = int(weight.size(0));
  const bool wide = out.scalar_type() == at::kFloat, skinny = is_skinny(rows, in, columns);
  if (skinny && wide) {
    multiply_skinny(bf16(x), bf16(weight), out.data_ptr<float>(), rows, in, columns, stream);
  } else if (skinny) {
    multiply_skinny(bf16(x), bf16(weight), bf16(bias), bf16(out), rows, in, columns, stream);
  } else if (wide) {
    at::mm_out(out, x, weight.t(), at::kFloat);
  } else if (bias.defined()) {
    at::addmm_out(out, bias, x, weight.t());
  } else {
    at::mm_out(out, x, weight.t());
  }
}

}  // namespace

Decoder::Decoder(const modeling::ModelConfig& config, const ExecutorOptions& options)
    : config_(config),
      options_(options),
      shape_{int(config.num_heads), int(config.num_kv_heads), int(config.head_dim), int(options.block_size),
             (config.num_heads + 2 * config.num_kv_heads) * config.head_dim} {
  const at::Tensor positions = at::arange(options.max_length, at::TensorOptions(at::kLong).device(options.device));
  const modeling::Rope rope = modeling::make_rope(config.rope, config.head_dim, positions);
  cos_ = rope.cos.contiguous(), sin_ = rope.sin.contiguous();
}

void Decoder::set_weights(const WeightMap& places) {
  if (places.empty()) return weights_.reset();
  if (!weights_) weights_.emplace(config_, places);
}

void Decoder::allocate(const ArrayLimits& limits) {
  release();
  const auto buffer = [&](int64_t rows, int64_t width, at::ScalarType dtype = at::kBFloat16) {
    return pool_tensor({rows, width}, dtype, options_.device, "a pass of the generator needs");
  };
  const int64_t hidden = config_.hidden_size, width = config_.intermediate_size, rows = limits.rows;
  const int64_t attended = config_.num_heads * config_.head_dim;
  residual_ = buffer(rows, hidden, at::kFloat);
  normed_ = buffer(rows, hidden), delta_ = buffer(rows, hidden);
  qkv_ = buffer(rows, shape_.q_stride), attended_ = buffer(rows, attended);
  gate_up_ = buffer(rows, 2 * width), activated_ = buffer(rows, width);
  last_ = buffer(limits.sequences, hidden), logits_ = buffer(limits.sequences, config_.vocab_size, at::kFloat);
  const int64_t partials = plan_bounds(limits.shape, limits.sequences, 0, 0).partials;
  partials_ = buffer(partials, attended), log_sums_ = buffer(partials, config_.num_heads, at::kFloat);
  if (tokens_.defined()) return;  // the next pass reads what the last one has drawn
  tokens_ = at::zeros({limits.sequences}, at::TensorOptions(at::kInt).device(options_.device));
  logprobs_ = at::zeros({limits.sequences}, at::TensorOptions(at::kFloat).device(options_.device));
}

void Decoder::release() {
  for (at::Tensor* buffer : {&residual_, &normed_, &qkv_, &attended_, &gate_up_, &activated_, &delta_, &last_, &logits_,
                             &partials_, &log_sums_})
    buffer->reset();
}

void Decoder::attend(const PassSizes& n, const PassArrays& arrays, const KvCache& cache, int64_t layer,
                     cudaStream_t stream) {
  const LayerPools pools{bf16(cache.keys(layer)), bf16(cache.values(layer))};
  __nv_bfloat16 *q = bf16(qkv_), *partials = bf16(partials_), *out = bf16(attended_);
  float* log_sums = log_sums_.data_ptr<float>();
  if (n.decode_rows > 0) {
    if (n.shared_items > 0) {
      // What a group shares is bound by arithmetic, what its rows have of their own by memory: side by side.
      beside_.fork(stream);
      attend_shared(shape_, arrays.shared(n.decode_rows, n.shared_items), q, pools, partials, log_sums,
                    beside_.stream());
    }
    attend_own(shape_, arrays.own(n.decode_rows, n.own_items), q, pools, partials, log_sums, stream);
  }
  attend_causal(shape_, arrays.prompt(n.prompt_requests, n.prompt_items), q, pools, out, stream);
  beside_.join(stream);
  merge_partials(partials, log_sums, arrays.merge(), out, int(n.decode_rows), shape_.heads, shape_.dim, stream);
}

void Decoder::run(const PassSizes& n, const PassArrays& arrays, const KvCache& cache) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(options_.device.index());
  const int rows = int(n.rows), hidden = int(config_.hidden_size), width = int(config_.intermediate_size);
  const NormShape norm{rows, hidden, float(config_.rms_norm_eps)};
  const QkvShape qkv{rows, shape_.heads, shape_.kv_heads, shape_.dim, shape_.block_size, float(config_.rms_norm_eps)};
  const at::Tensor x = rows_of(normed_, n.rows), delta = rows_of(delta_, n.rows);
  const at::Tensor attended = rows_of(attended_, n.rows), activated = rows_of(activated_, n.rows);
  float* residual = residual_.data_ptr<float>();
  const FusedWeights& w = *weights_;
  embed_norm(bf16(w.embedding), arrays.ids(), tokens(), bf16(w.layers[0].input_norm), residual, bf16(x), norm, stream);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const FusedLayer& layer = w.layers[i];
    multiply(x, layer.qkv, layer.qkv_bias, rows_of(qkv_, n.rows), stream);
    rope_append(bf16(qkv_), {bf16(layer.q_norm), bf16(layer.k_norm)}, cos_.data_ptr<float>(), sin_.data_ptr<float>(),
                arrays.positions(), arrays.slots(), bf16(cache.keys(i)), bf16(cache.values(i)), qkv, stream);
    attend(n, arrays, cache, i, stream);
    multiply(attended, layer.output, {}, delta, stream);
    add_norm(bf16(delta), bf16(layer.post_attention_norm), residual, bf16(x), norm, stream);
    if (is_skinny(rows, hidden, width)) {
      swiglu_skinny(bf16(x), bf16(layer.gate_up), bf16(activated), rows, hidden, width, stream);
    } else {
      multiply(x, layer.gate_up, {}, rows_of(gate_up_, n.rows), stream);
      swiglu(bf16(gate_up_), bf16(activated), rows, width, stream);
    }
    multiply(activated, layer.down, {}, delta, stream);
    if (i + 1 < config_.num_layers)
      add_norm(bf16(delta), bf16(w.layers[i + 1].input_norm), residual, bf16(x), norm, stream);
  }
  if (n.logit_rows == 0) return;
  add_norm_of_rows(arrays.logit_rows(), bf16(delta), bf16(w.final_norm), residual, bf16(last_),
                   {int(n.logit_rows), hidden, norm.eps}, stream);
  multiply(rows_of(last_, n.logit_rows), w.head, {}, rows_of(logits_, n.logit_rows), stream);
  sample(logits_.const_data_ptr<float>(), int(config_.vocab_size), arrays.tasks(), tokens_.data_ptr<int32_t>(),
         logprobs_.data_ptr<float>(), int(n.draws), stream);
}

}  // namespace hexad::native::cuda
