#include "plugins/native/cuda/decode/decoder.hpp"

#include <ATen/Functions.h>
#include <c10/cuda/CUDAStream.h>

#include "modeling/op/rope.hpp"
#include "plugins/native/cuda/attention/rope_append.hpp"
#include "plugins/native/cuda/decode/pool.hpp"
#include "plugins/native/cuda/elementwise.hpp"
#include "plugins/native/cuda/norm.hpp"
#include "plugins/native/cuda/skinny.hpp"

namespace hexad::native::cuda {
namespace {

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

LayerPools pools_of(const KvCache& cache, int64_t layer) {
  return {cache.keys(layer).data_ptr(), cache.values(layer).data_ptr(), cache.dtype() == at::kFloat8_e4m3fn};
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
  if (!weights_) weights_.emplace(config_, places, options_.replica.shard());
}

void Decoder::allocate(const ArrayLimits& limits) {
  release();
  const auto buffer = [&](int64_t rows, int64_t width, at::ScalarType dtype = at::kBFloat16) {
    return pool_tensor({rows, width}, dtype, options_.device, "a pass of the generator needs");
  };
  const int64_t hidden = config_.hidden_size, width = config_.intermediate_size, rows = limits.rows;
  const int64_t attended = config_.num_heads * config_.head_dim;
  const int64_t in_bf16 = options_.fp8 ? kMostSkinnyRows : rows;  // of what products read
  residual_ = buffer(rows, hidden, at::kFloat);
  normed_ = buffer(in_bf16, hidden), delta_ = buffer(rows, hidden);
  qkv_ = buffer(rows, shape_.q_stride), attended_ = buffer(rows, attended);
  gate_up_ = buffer(rows, 2 * width), activated_ = buffer(in_bf16, width);
  if (options_.fp8) {
    casts_ = buffer(rows, std::max({hidden, attended, width}), at::kByte).view(at::kFloat8_e4m3fn).flatten();
    cast_scales_ = buffer(rows, 1, at::kFloat).flatten();
  }
  last_ = buffer(limits.sequences, hidden), logits_ = buffer(limits.sequences, config_.vocab_size, at::kFloat);
  const int64_t partials = plan_bounds(limits.shape, limits.sequences, 0, 0).partials;
  partials_ = buffer(partials, attended), log_sums_ = buffer(partials, config_.num_heads, at::kFloat);
  if (const int64_t ranks = options_.replica.shard().ranks; ranks > 1) {
    own_logits_ = buffer(limits.sequences, modeling::chunk_length(config_.vocab_size, ranks), at::kFloat);
    parts_ = buffer(ranks, own_logits_.numel(), at::kFloat);
    part_draws_.emplace(options_.replica, config_.vocab_size, limits.sequences, options_.device);
  }
  if (tokens_.defined()) return;  // the next pass reads what the last one has drawn
  tokens_ = at::zeros({limits.sequences}, at::TensorOptions(at::kInt).device(options_.device));
  logprobs_ = at::zeros({limits.sequences}, at::TensorOptions(at::kFloat).device(options_.device));
}

void Decoder::release() {
  for (at::Tensor* buffer : {&residual_, &normed_, &qkv_, &attended_, &gate_up_, &activated_, &delta_, &last_, &logits_,
                             &partials_, &log_sums_, &casts_, &cast_scales_, &own_logits_, &parts_})
    buffer->reset();
  part_draws_.reset();
}

void Decoder::attend(const PassSizes& n, const PassArrays& arrays, const KvCache& cache, int64_t layer,
                     cudaStream_t stream) {
  const LayerPools pools = pools_of(cache, layer);
  __nv_bfloat16 *q = bf16(qkv_), *partials = bf16(partials_), *out = bf16(attended_);
  float* log_sums = log_sums_.data_ptr<float>();
  if (n.decode_rows > 0) {
    if (n.shared_items > 0) {
      // What a group shares is bound by arithmetic, what its rows have of their own by memory: side by side.
      beside_.fork(stream);
      attend_shared(shape_, arrays.shared(n.decode_rows, n.shared_items), q, pools, partials, log_sums,
                    beside_.stream());
    }
    const bool few = n.decode_rows <= kMostSkinnyRows && is_row_shape(shape_) && !pools.fp8;
    const auto attend_own_keys = few ? attend_rows : attend_own;
    attend_own_keys(shape_, arrays.own(n.decode_rows, n.own_items), q, pools, partials, log_sums, stream);
  }
  attend_causal(shape_, arrays.prompt(n.prompt_requests, n.prompt_items), q, pools, out, stream);
  beside_.join(stream);
  merge_partials(partials, log_sums, arrays.merge(), out, int(n.decode_rows), shape_.heads, shape_.dim, stream);
}

Rows Decoder::input(const at::Tensor& buffer, int64_t rows) const {
  if (!options_.fp8 || rows <= kMostSkinnyRows) return {rows_of(buffer, rows), {}};
  const int64_t width = buffer.size(1);
  return {casts_.narrow(0, 0, rows * width).view({rows, width}), cast_scales_.narrow(0, 0, rows)};
}

void Decoder::make_activated(const FusedLayer& layer, const Rows& x, const Rows& activated, cudaStream_t stream) {
  const int rows = int(x.values.size(0)), hidden = int(x.values.size(1)), width = int(activated.values.size(1));
  const at::Tensor gate_up = rows_of(gate_up_, rows);
  if (x.is_fp8()) {
    multiply_fp8(x, layer.gate_up, layer.gate_up_scales, {}, gate_up);
    swiglu_fp8(bf16(gate_up), activated.fp8(), rows, width, stream);
  } else if (options_.fp8) {
    swiglu_skinny(bf16(x.values), fp8_weight(layer.gate_up, layer.gate_up_scales), bf16(activated.values), rows, hidden,
                  width, stream);
  } else if (is_skinny(rows, hidden, width)) {
    swiglu_skinny(bf16(x.values), bf16(layer.gate_up), bf16(activated.values), rows, hidden, width, stream);
  } else {
    multiply(x.values, layer.gate_up, {}, gate_up, stream);
    swiglu(bf16(gate_up), bf16(activated.values), rows, width, stream);
  }
}

at::Tensor Decoder::make_own_logits(int64_t rows, cudaStream_t stream) {
  const at::Tensor& head = weights_->head;
  const at::Tensor own = own_logits_.view({-1}).narrow(0, 0, rows * head.size(0)).view({rows, head.size(0)});
  multiply(rows_of(last_, rows), head, {}, own, stream);
  return own;
}

void Decoder::make_logits(int64_t rows, cudaStream_t stream) {
  const at::Tensor logits = rows_of(logits_, rows);
  if (options_.replica.alone()) return multiply(rows_of(last_, rows), weights_->head, {}, logits, stream);
  options_.replica.join_columns(make_own_logits(rows, stream), parts_, logits);
}

void Decoder::make_draws(const PassSizes& n, const PassArrays& arrays, cudaStream_t stream) {
  auto* const tokens = tokens_.data_ptr<int32_t>();
  auto* const logprobs = logprobs_.data_ptr<float>();
  if (part_draws_ && !n.joins)
    return part_draws_->draw(make_own_logits(n.logit_rows, stream), arrays.tasks(), tokens, logprobs, n.draws, stream);
  make_logits(n.logit_rows, stream);
  sample(logits_.const_data_ptr<float>(), int(config_.vocab_size), arrays.tasks(), tokens, logprobs, int(n.draws),
         stream);
}

void Decoder::run(const PassSizes& n, const PassArrays& arrays, const KvCache& cache) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(options_.device.index());
  const int rows = int(n.rows), hidden = int(config_.hidden_size);
  const NormShape norm{rows, hidden, float(config_.rms_norm_eps)};
  const QkvShape qkv{rows, shape_.heads, shape_.kv_heads, shape_.dim, shape_.block_size, float(config_.rms_norm_eps)};
  const Rows x = input(normed_, n.rows), attended = input(attended_, n.rows), activated = input(activated_, n.rows);
  const at::Tensor delta = rows_of(delta_, n.rows);
  float* residual = residual_.data_ptr<float>();
  const FusedWeights& w = *weights_;
  const auto product = [&](const Rows& in, const at::Tensor& weight, const at::Tensor& scales, const at::Tensor& bias,
                           const at::Tensor& out) {
    options_.fp8 ? multiply_fp8(in, weight, scales, bias, out) : multiply(in.values, weight, bias, out, stream);
  };
  const auto add_delta = [&](const at::Tensor& weight) {
    x.is_fp8() ? add_norm(bf16(delta), bf16(weight), residual, x.fp8(), norm, stream)
               : add_norm(bf16(delta), bf16(weight), residual, bf16(x.values), norm, stream);
  };
  const auto embed = [&](auto to) {
    embed_norm(bf16(w.embedding), arrays.ids(), tokens(), bf16(w.layers[0].input_norm), residual, to, norm, stream);
  };
  x.is_fp8() ? embed(x.fp8()) : embed(bf16(x.values));
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const FusedLayer& layer = w.layers[i];
    product(x, layer.qkv, layer.qkv_scales, layer.qkv_bias, rows_of(qkv_, n.rows));
    rope_append(bf16(qkv_), {bf16(layer.q_norm), bf16(layer.k_norm)}, cos_.data_ptr<float>(), sin_.data_ptr<float>(),
                arrays.positions(), arrays.slots(), pools_of(cache, i), qkv, stream);
    attend(n, arrays, cache, i, stream);
    if (attended.is_fp8()) cast_rows(rows_of(attended_, n.rows), attended.values, attended.scales);
    product(attended, layer.output, layer.output_scales, {}, delta);
    options_.replica.sum(delta);
    add_delta(layer.post_attention_norm);
    make_activated(layer, x, activated, stream);
    product(activated, layer.down, layer.down_scales, {}, delta);
    options_.replica.sum(delta);
    if (i + 1 < config_.num_layers) add_delta(w.layers[i + 1].input_norm);
  }
  if (n.logit_rows == 0) return;
  add_norm_of_rows(arrays.logit_rows(), bf16(delta), bf16(w.final_norm), residual, bf16(last_),
                   {int(n.logit_rows), hidden, norm.eps}, stream);
  make_draws(n, arrays, stream);
}

}  // namespace hexad::native::cuda
