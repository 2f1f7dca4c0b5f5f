#include "plugins/native/cuda/decode/invariant_decoder.hpp"

#include <ATen/Functions.h>
#include <c10/cuda/CUDAStream.h>

#include "modeling/op/cuda/batch_invariant/attention_kernel.hpp"
#include "modeling/op/cuda/batch_invariant/product_kernel.hpp"
#include "modeling/op/cuda/rms_norm_kernel.hpp"
#include "modeling/op/cuda/rope_kernel.hpp"
#include "modeling/op/cuda/softmax_kernel.hpp"
#include "modeling/op/cuda/swiglu_kernel.hpp"
#include "plugins/native/cuda/check.hpp"
#include "plugins/native/cuda/invariant_rows.hpp"
#include "plugins/native/cuda/norm.hpp"
#include "plugins/native/cuda/decode/pool.hpp"

namespace hexad::native::cuda {

namespace kernels = modeling::cuda;

static_assert(kernels::kInvariantTileKeys == kCarriedTile);

namespace {

__nv_bfloat16* data_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<__nv_bfloat16*>(tensor.data_ptr()) : nullptr;
}

}  // namespace

InvariantDecoder::InvariantDecoder(const modeling::ModelConfig& config, const ExecutorOptions& options)
    : Decoder(config, options), device_(options.device.index()) {
  check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_), "device");
}

void InvariantDecoder::allocate(const ArrayLimits& limits) {
  Decoder::allocate(limits);
  const auto buffer = [&](int64_t rows, int64_t width, at::ScalarType dtype) {
    return pool_tensor({rows, width}, dtype, options_.device, "a pass of the generator needs");
  };
  const int64_t rows = limits.rows, sequences = limits.sequences, dim = shape_.dim;
  angles_cos_ = buffer(rows, dim / 2, at::kFloat), angles_sin_ = buffer(rows, dim / 2, at::kFloat);
  inverses_ = buffer(rows, config_.qk_norm ? shape_.heads : 1, at::kFloat);
  if (config_.qk_norm) {
    normed_q_ = buffer(rows, shape_.heads * dim, at::kBFloat16);
    normed_k_ = buffer(rows, shape_.kv_heads * dim, at::kBFloat16);
  }
  states_ = buffer(sequences, shape_.heads * dim, at::kFloat);
  scalars_ = buffer(sequences, shape_.heads * 2, at::kFloat);
  for (at::Tensor* values : {&scale_, &log_sums_drawn_, &entropies_, &target_logits_})
    *values = buffer(1, sequences, at::kFloat);
  source_ = buffer(1, sequences, at::kInt), targets_ = buffer(1, sequences, at::kLong);
}

void InvariantDecoder::release() {
  Decoder::release();
  for (at::Tensor* buffer : {&angles_cos_, &angles_sin_, &inverses_, &normed_q_, &normed_k_, &scale_, &log_sums_drawn_,
                             &entropies_, &target_logits_, &source_, &targets_, &states_, &scalars_})
    buffer->reset();
}

void InvariantDecoder::multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                const at::Tensor& out) {
  kernels::InvariantProduct call;
  call.x = x.const_data_ptr(), call.weight = weight.const_data_ptr(), call.y = out.data_ptr();
  call.bias = bias.defined() ? bias.const_data_ptr() : nullptr;
  call.x_stride = x.stride(0), call.y_stride = out.stride(0);
  call.rows = int(x.size(0)), call.in = int(weight.size(1)), call.out = int(weight.size(0));
  call.wide = out.scalar_type() == at::kFloat;
  call.device = device_, call.processors = processors_;
  kernels::invariant_product(call, stream_);
}

void InvariantDecoder::norm(const __nv_bfloat16* delta, const at::Tensor& weight, int rows) {
  kernels::RmsNormForward call;
  call.shape.rows = rows, call.shape.dim = int(config_.hidden_size), call.shape.group_stride = config_.hidden_size;
  call.eps = float(config_.rms_norm_eps);
  call.x = residual_.const_data_ptr(), call.weight = weight.const_data_ptr(), call.y = normed_.data_ptr();
  if (delta) call.delta = delta, call.sum = residual_.data_ptr();  // in place: a thread writes what it has read
  call.inv_rms = inverses_.data_ptr<float>();
  call.x_type = kernels::Element::f32, call.y_type = kernels::Element::bf16;
  kernels::rms_norm_forward(call, stream_);
}

const __nv_bfloat16* InvariantDecoder::norm_heads(const __nv_bfloat16* heads, int count, const at::Tensor& weight,
                                                  at::Tensor& out, int rows) {
  kernels::RmsNormForward call;
  call.shape.rows = int64_t(rows) * count, call.shape.dim = shape_.dim;
  call.shape.per_group = count, call.shape.group_stride = shape_.q_stride;
  call.eps = float(config_.rms_norm_eps);
  call.x = heads, call.weight = weight.const_data_ptr(), call.y = out.data_ptr();
  call.inv_rms = inverses_.data_ptr<float>();
  call.x_type = call.y_type = kernels::Element::bf16;
  kernels::rms_norm_forward(call, stream_);
  return data_of(out);
}

void InvariantDecoder::turn_heads(const FusedLayer& layer, int rows) {
  const int q_width = shape_.heads * shape_.dim, kv_width = shape_.kv_heads * shape_.dim;
  const __nv_bfloat16 *q = data_of(qkv_), *k = q + q_width, *v = k + kv_width;
  kernels::RopeCall call;
  call.parts[0] = {q, shape_.q_stride, shape_.heads};
  call.parts[1] = {k, shape_.q_stride, shape_.kv_heads};
  call.parts[2] = {v, shape_.q_stride, shape_.kv_heads};
  if (config_.qk_norm) {
    call.parts[0] = {norm_heads(q, shape_.heads, layer.q_norm, normed_q_, rows), q_width, shape_.heads};
    call.parts[1] = {norm_heads(k, shape_.kv_heads, layer.k_norm, normed_k_, rows), kv_width, shape_.kv_heads};
  }
  call.cos = angles_cos_.const_data_ptr<float>(), call.sin = angles_sin_.const_data_ptr<float>();
  call.out = qkv_.data_ptr();  // in place likewise
  call.tokens = rows, call.half = shape_.dim / 2;
  call.type = kernels::Element::bf16;
  kernels::rotate_heads(call, stream_);
}

void InvariantDecoder::attend(const PassSizes& n, const PassArrays& arrays, const KvCache& cache, int64_t layer) {
  const int64_t block = int64_t(shape_.block_size) * shape_.dim;
  kernels::InvariantAttention call;
  call.q = qkv_.const_data_ptr(), call.q_stride = shape_.q_stride, call.out = attended_.data_ptr();
  call.keys = cache.keys(layer).const_data_ptr(), call.values = cache.values(layer).const_data_ptr();
  call.key_stride = call.value_stride = shape_.dim;
  call.key_head_stride = call.value_head_stride = block;
  call.block_size = shape_.block_size, call.block_places = int64_t(shape_.kv_heads) * shape_.block_size;
  call.heads = shape_.heads, call.kv_heads = shape_.kv_heads, call.dim = shape_.dim;
  const auto of_level = [&](const LevelArrays& level) {
    call.q_indptr = level.q_indptr, call.blocks = level.blocks;
    call.block_indptr = level.block_indptr, call.last_block_size = level.last_block_size;
    call.item_sequence = level.request, call.item_tile = level.tile, call.items = level.items;
    call.item_valid = level.valid;
  };
  of_level(arrays.prompt(n.prompt_requests, n.prompt_items));
  call.item_rows = int(kPromptTile);
  kernels::invariant_attention(call, stream_);
  if (n.decode_rows == 0) return;
  call.states = states_.data_ptr<float>(), call.scalars = scalars_.data_ptr<float>();
  if (n.shared_items > 0) {
    of_level(arrays.shared(n.decode_rows, n.shared_items));
    call.item_rows = int(kSharedTile), call.leaves = true;
    kernels::invariant_attention(call, stream_);
    call.leaves = false;
    call.resumes = &arrays.merge()->shared_count, call.resume_stride = sizeof(MergeRow) / sizeof(int32_t);
  }
  of_level(arrays.own(n.decode_rows, n.own_items));
  call.item_sequence = nullptr;  // a row a sequence
  call.sequences = int(n.decode_rows), call.most_rows = 1;
  kernels::invariant_attention(call, stream_);
}

void InvariantDecoder::run(const PassSizes& n, const PassArrays& arrays, const KvCache& cache) {
  stream_ = c10::cuda::getCurrentCUDAStream(options_.device.index());
  const int rows = int(n.rows), hidden = int(config_.hidden_size), width = int(config_.intermediate_size);
  const QkvShape qkv{rows, shape_.heads, shape_.kv_heads, shape_.dim, shape_.block_size, float(config_.rms_norm_eps)};
  const at::Tensor x = rows_of(normed_, n.rows), delta = rows_of(delta_, n.rows);
  const FusedWeights& w = *weights_;
  const int64_t angles = shape_.dim / 2 * int64_t(sizeof(float));
  gather_rows(cos_.const_data_ptr(), arrays.positions(), angles_cos_.data_ptr(), angles, rows, stream_);
  gather_rows(sin_.const_data_ptr(), arrays.positions(), angles_sin_.data_ptr(), angles, rows, stream_);
  // Of this the residual stream alone is used.
  embed_norm(data_of(w.embedding), arrays.ids(), tokens(), data_of(w.layers[0].input_norm), residual_.data_ptr<float>(),
             data_of(x), {rows, hidden, float(config_.rms_norm_eps)}, stream_);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const FusedLayer& layer = w.layers[i];
    norm(i > 0 ? data_of(delta) : nullptr, layer.input_norm, rows);
    multiply(x, layer.qkv, layer.qkv_bias, rows_of(qkv_, n.rows));
    turn_heads(layer, rows);
    append_keys_values(data_of(qkv_), arrays.slots(), data_of(cache.keys(i)), data_of(cache.values(i)), qkv, stream_);
    attend(n, arrays, cache, i);
    multiply(rows_of(attended_, n.rows), layer.output, {}, delta);
    norm(data_of(delta), layer.post_attention_norm, rows);
    multiply(x, layer.gate_up, {}, rows_of(gate_up_, n.rows));
    kernels::SwigluCall activation;
    activation.rows = rows, activation.columns = width;
    activation.gate_stride = activation.up_stride = 2 * int64_t(width);
    activation.gate = data_of(gate_up_), activation.up = data_of(gate_up_) + width;
    activation.type = kernels::Element::bf16;
    kernels::swiglu_forward(activation, activated_.data_ptr(), stream_);
    multiply(rows_of(activated_, n.rows), layer.down, {}, delta);
  }
  if (n.logit_rows == 0) return;
  norm(data_of(delta), w.final_norm, rows);
  gather_rows(x.const_data_ptr(), arrays.logit_rows(), last_.data_ptr(), 2 * int64_t(hidden), int(n.logit_rows),
              stream_);
  multiply(rows_of(last_, n.logit_rows), w.head, {}, rows_of(logits_, n.logit_rows));
  draw(n, arrays);
}

void InvariantDecoder::draw(const PassSizes& n, const PassArrays& arrays) {
  const int draws = int(n.draws);
  sample(logits_.const_data_ptr<float>(), int(config_.vocab_size), arrays.tasks(), tokens_.data_ptr<int32_t>(),
         logprobs_.data_ptr<float>(), draws, stream_);
  describe_draws(arrays.tasks(), tokens(),
                 {source_.data_ptr<int32_t>(), scale_.data_ptr<float>(), targets_.data_ptr<int64_t>()},
                 int(config_.vocab_size), draws, stream_);
  kernels::SoftmaxStatisticsCall call;
  call.logits = logits_.const_data_ptr<float>();
  call.source = source_.const_data_ptr<int32_t>(), call.scale = scale_.const_data_ptr<float>();
  call.targets = targets_.const_data_ptr<int64_t>(), call.target_logits = target_logits_.data_ptr<float>();
  call.log_sum = log_sums_drawn_.data_ptr<float>(), call.entropy = entropies_.data_ptr<float>();
  call.rows = draws, call.columns = config_.vocab_size;
  kernels::softmax_statistics(call, stream_);
  finish_logprobs(target_logits_.const_data_ptr<float>(), log_sums_drawn_.const_data_ptr<float>(),
                  targets_.const_data_ptr<int64_t>(), logprobs_.data_ptr<float>(), draws, stream_);
}

}  // namespace hexad::native::cuda
