#include "sdk/verify/case/backend_case.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "sdk/verify/guarded.hpp"

namespace hexad::verify {
namespace {

constexpr const char* kLogprobs = "logprobs";

// A batch as the vtable takes it: the tensors that describe() lists, input_ids first, the rest absent.
class BatchView {
 public:
  BatchView(const Subject& subject, void* instance, const TokenBatch& batch)
      : ids_(DLDataType HEXAD_DTYPE_I64, {static_cast<int64_t>(batch.ids.size())}) {
    std::copy(batch.ids.begin(), batch.ids.end(), ids_.data<int64_t>());
    hexad_backend_info info{};
    info.struct_size = HEXAD_STRUCT_SIZE(hexad_backend_info, num_inputs);
    const auto call = subject.engine->call();
    code = subject.desc->backend->describe(static_cast<hexad_backend*>(instance), call->handle(), &info);
    text = call->text();
    for (int64_t i = 0; i < info.num_inputs; ++i) {
      tensors_.push_back({info.inputs[i], i == 0 ? ids_.tensor() : nullptr, nullptr, HEXAD_AXIS_TOKEN, 0});
    }
    batch_ = {HEXAD_STRUCT_SIZE(hexad_batch, is_dummy),
              0,
              static_cast<int64_t>(batch.cu_seqlens.size()) - 1,
              batch.cu_seqlens.back(),
              batch.cu_seqlens.data(),
              tensors_.data(),
              static_cast<int64_t>(tensors_.size()),
              0,
              batch.ids.empty()};
  }
  const hexad_batch* get() const { return &batch_; }
  bool intact() const { return ids_.memory().intact(); }

  hexad_code code = HEXAD_OK;  // of describe
  std::string text;

 private:
  GuardedTensor ids_;
  std::vector<hexad_named_tensor> tensors_;
  hexad_batch batch_{};
};

// What the loss callback needs and leaves.
struct LossState {
  double tokens = 0, gradient = 0, loss = 0;
  std::vector<float> logprobs;
};

hexad_code negative_log_likelihood(void* context, hexad_call*, int64_t, const hexad_named_tensor* outputs,
                                   DLTensor* const* grads, int64_t) {
  auto& state = *static_cast<LossState*>(context);
  const DLTensor& logprobs = *outputs[0].tensor;
  const float* values = HEXAD_F32(&logprobs);
  state.logprobs.insert(state.logprobs.end(), values, values + logprobs.shape[0]);
  for (int64_t t = 0; t < logprobs.shape[0]; ++t) {
    state.loss -= values[t] / state.tokens;
    HEXAD_F32(grads[0])[t] = static_cast<float>(state.gradient != 0 ? state.gradient : -1 / state.tokens);
  }
  return HEXAD_OK;
}

}  // namespace

TokenBatch make_tokens(const std::vector<int64_t>& lengths, uint64_t seed) {
  std::mt19937_64 random(seed);
  TokenBatch batch;
  for (int64_t length : lengths) {
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + length);
    for (int64_t t = 0; t < length; ++t) batch.ids.push_back(static_cast<int64_t>(1 + random() % 3));
  }
  return batch;
}

TokenBatch joined(TokenBatch first, const TokenBatch& second) {
  const int64_t offset = first.cu_seqlens.back();
  for (size_t i = 1; i < second.cu_seqlens.size(); ++i) first.cu_seqlens.push_back(offset + second.cu_seqlens[i]);
  first.ids.insert(first.ids.end(), second.ids.begin(), second.ids.end());
  return first;
}

BackendResult forward(const Subject& subject, void* instance, const TokenBatch& batch, int32_t which,
                      const CallOptions& options, double temperature) {
  const BatchView view(subject, instance, batch);
  if (view.code != HEXAD_OK) return {view.code, view.text, {}, 0, 0, 0, ""};
  GuardedTensor logprobs(DLDataType HEXAD_DTYPE_F32, {static_cast<int64_t>(batch.ids.size())});
  hexad_named_tensor output = {kLogprobs, logprobs.tensor(), nullptr, HEXAD_AXIS_TOKEN, 0};
  hexad_named_tensor* const outputs[] = {&output};
  const hexad_batch* const batches[] = {view.get()};
  const hexad_forward_args args = {
      HEXAD_STRUCT_SIZE(hexad_forward_args, top_p), which, batches, 1, outputs, 1, temperature, 0, 1.0};
  const auto call = subject.engine->call(options);
  BackendResult result;
  result.code = subject.desc->backend->forward(static_cast<hexad_backend*>(instance), call->handle(), &args);
  result.text = call->text();
  result.logprobs.assign(logprobs.data<float>(), logprobs.data<float>() + batch.ids.size());
  if (!logprobs.memory().intact()) result.damage = "bytes beside the log-probs";
  if (!view.intact()) result.damage = "bytes beside input_ids";
  return result;
}

BackendResult train(const Subject& subject, void* instance, const std::vector<TokenBatch>& batches, double gradient,
                    double temperature) {
  std::vector<std::unique_ptr<BatchView>> views;
  std::vector<const hexad_batch*> pointers;
  LossState state{0, gradient, 0, {}};
  for (const TokenBatch& batch : batches) {
    const auto& view = views.emplace_back(std::make_unique<BatchView>(subject, instance, batch));
    if (view->code != HEXAD_OK) return {view->code, view->text, {}, 0, 0, 0, ""};
    pointers.push_back(view->get());
    state.tokens += static_cast<double>(batch.ids.size());
  }
  const hexad_loss_callback loss = {HEXAD_STRUCT_SIZE(hexad_loss_callback, compute), 0, &state,
                                    negative_log_likelihood};
  const char* const outputs[] = {kLogprobs};
  const hexad_train_args args = {HEXAD_STRUCT_SIZE(hexad_train_args, top_p),
                                 0,
                                 pointers.data(),
                                 static_cast<int64_t>(pointers.size()),
                                 outputs,
                                 1,
                                 &loss,
                                 temperature,
                                 0,
                                 1.0};
  const auto call = subject.engine->call();
  BackendResult result;
  result.code = subject.desc->backend->train(static_cast<hexad_backend*>(instance), call->handle(), &args);
  result.text = call->text();
  result.logprobs = state.logprobs;
  result.loss = state.loss;
  for (const auto& view : views) {
    if (!view->intact()) result.damage = "bytes beside input_ids";
  }
  return result;
}

BackendResult step(const Subject& subject, void* instance, double lr, uint32_t flags) {
  const hexad_step_args args = {HEXAD_STRUCT_SIZE(hexad_step_args, max_grad_norm), flags, lr, std::nan(""), 0};
  hexad_step_stats stats{};
  stats.struct_size = HEXAD_STRUCT_SIZE(hexad_step_stats, grad_norm);
  const auto call = subject.engine->call();
  BackendResult result;
  result.code = subject.desc->backend->step(static_cast<hexad_backend*>(instance), call->handle(), &args, &stats);
  result.text = call->text();
  result.grad_norm = stats.grad_norm;
  result.skipped = stats.skipped;
  return result;
}

}  // namespace hexad::verify
