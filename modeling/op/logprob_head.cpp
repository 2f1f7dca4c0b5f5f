#include "modeling/op/logprob_head.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "modeling/error.hpp"
#include "modeling/op/softmax_rows.hpp"
#include "modeling/op/token_filter.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The rows that are computed, and the operands of the matrix products: on a CPU in fp32 (which is its fast type), on a
// GPU in the model's dtype with fp32 results.
struct Rows {
  at::Tensor index;  // int64 [n]; undefined when every row is computed
  at::Tensor hidden, weight, targets;

  Rows(const at::Tensor& all_hidden, const at::Tensor& full_weight, const at::Tensor& all_targets) {
    index = (all_targets >= 0).nonzero().squeeze(1);
    if (index.numel() == all_targets.numel()) index = at::Tensor();
    hidden = index.defined() ? all_hidden.index_select(0, index) : all_hidden.contiguous();
    targets = index.defined() ? all_targets.index_select(0, index) : all_targets.contiguous();
    weight = full_weight;
    if (hidden.is_cpu()) hidden = hidden.to(at::kFloat), weight = weight.to(at::kFloat);
  }

  at::Tensor scatter(const at::Tensor& rows, int64_t total) const {
    if (!index.defined()) return rows;
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[0] = total;
    return at::zeros(shape, rows.options()).index_copy_(0, index, rows);
  }
  at::Tensor gather(const at::Tensor& values) const {
    return index.defined() ? values.index_select(0, index) : values.contiguous();
  }
};

// fp32 logits of rows [begin, end), divided by the temperature, in `buffer`.
at::Tensor chunk_logits(const Rows& rows, int64_t begin, int64_t end, double temperature, at::Tensor& buffer) {
  const at::Tensor hidden = rows.hidden.slice(0, begin, end);
  at::Tensor logits = buffer.slice(0, 0, end - begin);
  if (hidden.scalar_type() == at::kFloat) {
    at::mm_out(logits, hidden, rows.weight.t());
  } else {
    at::mm_out(logits, hidden, rows.weight.t(), at::kFloat);
  }
  if (temperature != 1.0) logits.div_(temperature);
  return logits;
}

int64_t chunk_rows(const LogprobOptions& options, const at::Tensor& weight) {
  if (options.chunk_tokens > 0) return options.chunk_tokens;
  const int64_t bytes = int64_t(weight.is_cpu() ? 64 : 512) << 20;
  return std::max<int64_t>(1, bytes / (4 * weight.size(0)));
}

at::Tensor make_buffer(const Rows& rows, int64_t chunk) {
  return at::empty({std::min(chunk, rows.hidden.size(0)), rows.weight.size(0)},
                   rows.hidden.options().dtype(at::kFloat));
}

at::Tensor filter_(at::Tensor& logits, const LogprobOptions& options) {
  return logits.masked_fill_(top_k_top_p_mask(logits, options.top_k, options.top_p).logical_not(), -kInfinity);
}

at::Tensor target_logprobs(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& log_sum) {
  return logits.gather(1, targets.unsqueeze(1)).squeeze(1) - log_sum;
}

struct Head : torch::autograd::Function<Head> {
  // Returns log-probs, entropy, unfiltered log-probs: [N] fp32 each, the last two empty unless wanted.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& hidden, const at::Tensor& weight,
                               const at::Tensor& targets, const LogprobOptions& options) {
    const Rows rows(hidden, weight, targets);
    const int64_t count = rows.hidden.size(0), total = targets.size(0), chunk = chunk_rows(options, weight);
    const bool filtered = filters_tokens(options.top_k, options.top_p, weight.size(0));
    const auto fp32 = hidden.options().dtype(at::kFloat);
    at::Tensor logprobs = at::empty({count}, fp32), entropy = at::empty({count}, fp32);
    at::Tensor log_sum = at::empty({count}, fp32), unfiltered = at::empty({count}, fp32);
    at::Tensor unfiltered_log_sum = at::empty({filtered ? count : 0}, fp32);
    at::Tensor buffer = make_buffer(rows, chunk);
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t end = std::min(count, begin + chunk);
      at::Tensor logits = chunk_logits(rows, begin, end, options.temperature, buffer);
      const at::Tensor target = rows.targets.slice(0, begin, end);
      if (filtered && options.unfiltered_too) {
        unfiltered_log_sum.slice(0, begin, end).copy_(softmax_statistics(logits).log_sum);
        unfiltered.slice(0, begin, end).copy_(target_logprobs(logits, target, unfiltered_log_sum.slice(0, begin, end)));
      }
      if (filtered) filter_(logits, options);
      const SoftmaxStatistics statistics = softmax_statistics(logits);
      log_sum.slice(0, begin, end).copy_(statistics.log_sum);
      entropy.slice(0, begin, end).copy_(statistics.entropy);
      logprobs.slice(0, begin, end).copy_(target_logprobs(logits, target, statistics.log_sum));
    }
    if (!filtered) unfiltered = logprobs;
    ctx->save_for_backward({hidden, weight, targets, log_sum, entropy, unfiltered_log_sum});
    ctx->saved_data["temperature"] = options.temperature;
    ctx->saved_data["top_k"] = options.top_k;
    ctx->saved_data["top_p"] = options.top_p;
    ctx->saved_data["chunk"] = chunk;
    const at::Tensor none = at::empty({0}, fp32);
    return {rows.scatter(logprobs, total), options.entropy ? rows.scatter(entropy, total) : none,
            options.unfiltered_too ? rows.scatter(unfiltered, total).clone() : none};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &hidden = saved[0], &weight = saved[1], &log_sum = saved[3], &entropy = saved[4];
    LogprobOptions options;
    options.temperature = ctx->saved_data["temperature"].toDouble();
    options.top_k = ctx->saved_data["top_k"].toInt();
    options.top_p = ctx->saved_data["top_p"].toDouble();
    const int64_t chunk = ctx->saved_data["chunk"].toInt();
    const bool filtered = filters_tokens(options.top_k, options.top_p, weight.size(0));

    const Rows rows(hidden, weight, saved[2]);
    const int64_t count = rows.hidden.size(0);
    const at::Tensor zeros = at::zeros({count}, log_sum.options());
    const auto gather = [&](const at::Tensor& grad) {
      return grad.defined() && grad.numel() > 0 ? rows.gather(grad) : zeros;
    };
    at::Tensor grad_logprob = gather(grads[0]);
    const at::Tensor grad_entropy = gather(grads[1]);
    at::Tensor grad_unfiltered = gather(grads[2]);
    if (!filtered) grad_logprob = grad_logprob + grad_unfiltered;
    const bool two_softmaxes = filtered && !grad_unfiltered.is_same(zeros);

    at::Tensor grad_hidden, grad_weight;
    if (ctx->needs_input_grad(0)) grad_hidden = at::empty_like(rows.hidden);
    if (ctx->needs_input_grad(1)) grad_weight = at::zeros_like(rows.weight, rows.weight.options().dtype(at::kFloat));
    at::Tensor buffer = make_buffer(rows, chunk);
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t end = std::min(count, begin + chunk);
      const auto part = [&](const at::Tensor& x) { return x.slice(0, begin, end); };
      at::Tensor logits = chunk_logits(rows, begin, end, options.temperature, buffer);
      const at::Tensor target = part(rows.targets);
      at::Tensor unfiltered = two_softmaxes ? logits.clone() : at::Tensor();
      at::Tensor grad = part(grad_logprob);
      if (filtered) {
        filter_(logits, options);
        const at::Tensor excluded = logits.gather(1, target.unsqueeze(1)).squeeze(1) == -kInfinity;
        grad = grad.masked_fill(excluded, 0.0);
      }
      softmax_gradient_(logits, {part(log_sum), part(entropy)}, grad, part(grad_entropy), target);
      if (two_softmaxes) {
        softmax_gradient_(unfiltered, {part(saved[5]), part(zeros)}, part(grad_unfiltered), part(zeros), target);
        logits.add_(unfiltered);
      }
      if (options.temperature != 1.0) logits.div_(options.temperature);
      accumulate(rows, begin, end, logits, grad_hidden, grad_weight);
    }
    if (grad_hidden.defined()) grad_hidden = rows.scatter(grad_hidden, hidden.size(0)).to(hidden.scalar_type());
    if (grad_weight.defined()) grad_weight = grad_weight.to(weight.scalar_type());
    return {grad_hidden, grad_weight, at::Tensor(), at::Tensor()};
  }

 private:
  // grad_hidden = g W, grad_weight += g^T h.
  static void accumulate(const Rows& rows, int64_t begin, int64_t end, const at::Tensor& grad_logits,
                         at::Tensor& grad_hidden, at::Tensor& grad_weight) {
    const at::Tensor hidden = rows.hidden.slice(0, begin, end);
    const at::Tensor grad = grad_logits.to(hidden.scalar_type());
    if (grad_hidden.defined()) {
      at::Tensor out = grad_hidden.slice(0, begin, end);
      at::mm_out(out, grad, rows.weight);
    }
    if (!grad_weight.defined()) return;
    if (grad.scalar_type() == at::kFloat) {
      grad_weight.addmm_(grad.t(), hidden);
    } else {
      grad_weight.add_(at::mm(grad.t(), hidden, at::kFloat));
    }
  }
};

void check(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
           const LogprobOptions& options) {
  if (hidden.dim() != 2 || weight.dim() != 2 || hidden.size(1) != weight.size(1) || targets.dim() != 1 ||
      targets.size(0) != hidden.size(0)) {
    fail("log-prob head: got hidden [{}], weight [{}], targets [{}]; wanted [N, H], [V, H], [N]",
         fmt::join(hidden.sizes(), ", "), fmt::join(weight.sizes(), ", "), fmt::join(targets.sizes(), ", "));
  }
  const int64_t largest = targets.numel() > 0 ? targets.max().item<int64_t>() : -1;
  if (largest >= weight.size(0)) {
    fail("log-prob head: target {} is outside the vocabulary of {}", largest, weight.size(0));
  }
  if (!(options.temperature > 0)) fail("log-prob head: temperature is {}, wanted more than 0", options.temperature);
  if (!(options.top_p > 0 && options.top_p <= 1)) fail("log-prob head: top_p is {}, wanted (0, 1]", options.top_p);
}

}  // namespace

LogprobResult head_logprobs(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                            const LogprobOptions& options) {
  check(hidden, weight, targets, options);
  variable_list out = Head::apply(hidden, weight, targets, options);
  return {out[0], options.entropy ? out[1] : at::Tensor(), options.unfiltered_too ? out[2] : at::Tensor()};
}

at::Tensor next_token_targets(const at::Tensor& ids, const at::Tensor& cu_seqlens) {
  at::Tensor targets = at::full_like(ids, -1);
  if (ids.numel() > 1) targets.slice(0, 0, -1).copy_(ids.slice(0, 1));
  const at::Tensor host = cu_seqlens.to(at::TensorOptions(at::kCPU).dtype(at::kLong)).contiguous();
  const int64_t* offsets = host.const_data_ptr<int64_t>();
  std::vector<int64_t> last;
  for (int64_t i = 1; i < host.numel(); ++i) {
    if (offsets[i] > offsets[i - 1]) last.push_back(offsets[i] - 1);
  }
  return targets.index_fill_(0, at::tensor(last, at::kLong).to(ids.device()), -1);
}

at::Tensor at_predicted_token(const at::Tensor& values) { return values.roll(1, 0); }

at::Tensor mask_out_neg_inf(const at::Tensor& logprobs, const at::Tensor& mask) {
  return logprobs.masked_fill(logprobs == -kInfinity, 0.0) * mask;
}

}  // namespace hexad::modeling
