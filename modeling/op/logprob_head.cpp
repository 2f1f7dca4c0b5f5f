#include "modeling/op/logprob_head.hpp"

#include <ATen/Functions.h>

#include <cmath>
#include <limits>

#include "modeling/error.hpp"
#include "modeling/op/cuda/batch_invariant.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/gemm.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/op/row/logit_rows.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// A filtered logit of a shard of the vocabulary, where a whole row may be filtered: infinities would make it NaN.
constexpr float kAbsent = -1e30f;

// The rows that are computed, and the operands of the matrix products: on a CPU in fp32 (which is its fast type), on a
// GPU in the model's dtype with fp32 results. To know how many rows have targets would make the host wait for a GPU:
// there all are computed, and what the others gave is covered up.
struct Rows {
  at::Tensor index;    // int64 [n]; undefined when every row is computed
  at::Tensor missing;  // bool [N]: rows without a target that are computed nevertheless
  at::Tensor hidden, weight, targets;

  Rows(const at::Tensor& all_hidden, const at::Tensor& full_weight, const at::Tensor& all_targets,
       const VocabShard& vocab) {
    if (all_targets.is_cuda()) {
      missing = all_targets.lt(0);
    } else {
      index = (all_targets >= 0).nonzero().squeeze(1);
      if (index.numel() == all_targets.numel()) index = at::Tensor();
    }
    hidden = index.defined() ? all_hidden.index_select(0, index) : all_hidden.contiguous();
    targets = index.defined() ? all_targets.index_select(0, index) : all_targets.contiguous();
    if (vocab.active()) targets = vocab.local(targets);
    weight = full_weight;
    if (hidden.is_cpu()) hidden = hidden.to(at::kFloat), weight = weight.to(at::kFloat);
  }

  at::Tensor scatter(const at::Tensor& rows, int64_t total) const {
    if (!index.defined()) return missing.defined() && rows.dim() == 1 ? rows.masked_fill(missing, 0) : rows;
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[0] = total;
    return at::zeros(shape, rows.options()).index_copy_(0, index, rows);
  }
  at::Tensor gather(const at::Tensor& values) const {
    if (missing.defined()) return values.masked_fill(missing, 0);
    return index.defined() ? values.index_select(0, index) : values.contiguous();
  }
  // Leaves those of the rows that `some`, int64, names.
  void narrow(const at::Tensor& some) {
    index = index.defined() ? index.index_select(0, some) : some;
    hidden = hidden.index_select(0, some), targets = targets.index_select(0, some);
  }
};

// fp32 logits of rows [begin, end), divided by the temperature, in `buffer`.
at::Tensor chunk_logits(const Rows& rows, int64_t begin, int64_t end, const LogprobOptions& options,
                        at::Tensor& buffer) {
  const double temperature = options.temperature;
  const at::Tensor hidden = rows.hidden.slice(0, begin, end);
  at::Tensor logits = buffer.slice(0, 0, end - begin);
  if (options.batch_invariant) {
    cuda::invariant_linear_out(logits, hidden, rows.weight);
    // As the generator's kernel does it: a product with the fp32 reciprocal.
    if (temperature != 1.0) logits.mul_(double(1.0f / float(temperature)));
    return logits;
  }
  if (hidden.scalar_type() == at::kFloat) {
    gemm_out(logits, hidden, rows.weight.t());
  } else {
    at::mm_out(logits, hidden, rows.weight.t(), at::kFloat);
  }
  if (temperature != 1.0) logits.div_(temperature);
  return logits;
}

int64_t chunk_rows(const LogprobOptions& options, const at::Tensor& weight) {
  if (options.chunk_tokens > 0) return options.chunk_tokens;
  // On a GPU each chunk reads and writes the sum of the weight's gradient once: chunks of thousands of rows hide that.
  const int64_t bytes = int64_t(weight.is_cpu() ? 64 : 2048) << 20;
  const VocabShard& vocab = options.vocab;  // equal on all ranks, whose shards may differ by a row
  return std::max<int64_t>(1, bytes / (4 * chunk_length(vocab.vocab_size, vocab.group.size())));
}

at::Tensor make_buffer(const Rows& rows, int64_t chunk) {
  return at::empty({std::min(chunk, rows.hidden.size(0)), rows.weight.size(0)},
                   rows.hidden.options().dtype(at::kFloat));
}

bool filters(const LogprobOptions& options) {
  return filters_tokens(options.top_k, options.top_p, options.vocab.vocab_size);
}

void filter_(at::Tensor& logits, const LogprobOptions& options) {
  const VocabShard& vocab = options.vocab;
  const at::Tensor rows = vocab.active() ? vocab.gather(logits) : logits;
  at::Tensor keep = top_k_top_p_mask(rows, options.top_k, options.top_p);
  if (vocab.active()) keep = keep.slice(1, vocab.rows.begin, vocab.rows.end);
  logits.masked_fill_(keep.logical_not(), vocab.active() ? kAbsent : -kInfinity);
}

// The targets' logits; 0 where this rank does not have the target.
at::Tensor at_targets(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor found = logits.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
  return found.masked_fill(targets.lt(0), 0.0);
}

struct TargetStatistics {
  SoftmaxStatistics softmax;
  at::Tensor logprobs;  // of the targets
};

// `kept`: fp16 rows that take a copy of the logits, or undefined.
TargetStatistics target_statistics(const at::Tensor& logits, const at::Tensor& targets, const VocabShard& vocab,
                                   const at::Tensor& kept = {}) {
  TargetStatistics result;
  at::Tensor target_logits;
  if (cuda::has_kernels(logits)) {
    const cuda::RowStatistics rows = cuda::softmax_statistics(logits, targets, kept);
    result.softmax = {rows.log_sum, rows.entropy}, target_logits = rows.target_logits;
  } else {
    result.softmax = softmax_statistics(logits), target_logits = at_targets(logits, targets);
  }
  if (vocab.active()) {
    vocab.combine(result.softmax, target_logits);
    target_logits.masked_fill_(target_logits.lt(kAbsent / 2), -kInfinity);
  }
  result.logprobs = target_logits - result.softmax.log_sum;
  return result;
}

// What is known of each computed row, fp32 [n]; the unfiltered pair is only filled when both softmaxes are wanted.
struct RowValues {
  at::Tensor logprobs, entropy, log_sum, unfiltered, unfiltered_log_sum;

  RowValues(int64_t count, const at::TensorOptions& fp32)
      : logprobs(at::empty({count}, fp32)),
        entropy(at::empty({count}, fp32)),
        log_sum(at::empty({count}, fp32)),
        unfiltered(at::empty({count}, fp32)),
        unfiltered_log_sum(at::empty({count}, fp32)) {}
};

void forward_chunk(const Rows& rows, const LogprobOptions& options, int64_t begin, int64_t end, at::Tensor& buffer,
                   RowValues& values, const at::Tensor& kept) {
  const auto put = [&](at::Tensor& all, const at::Tensor& part) { all.slice(0, begin, end).copy_(part); };
  at::Tensor logits = chunk_logits(rows, begin, end, options, buffer);
  const at::Tensor targets = rows.targets.slice(0, begin, end);
  if (filters(options)) {
    if (options.unfiltered_too) {
      const TargetStatistics statistics = target_statistics(logits, targets, options.vocab);
      put(values.unfiltered_log_sum, statistics.softmax.log_sum);
      put(values.unfiltered, statistics.logprobs);
    }
    filter_(logits, options);
  }
  const TargetStatistics statistics = target_statistics(logits, targets, options.vocab, kept);
  put(values.log_sum, statistics.softmax.log_sum);
  put(values.entropy, statistics.softmax.entropy);
  put(values.logprobs, statistics.logprobs);
}

// Logits that stay from the forward pass to the backward pass, which then need not multiply by the vocabulary again (a
// quarter of the head's work); undefined when none do. On a GPU fp16 [n, V], n a multiple of the chunk or all rows:
// their rounding is that of the 16-bit gradients made of them. On a CPU fp32 [all rows, V], where these are few.
at::Tensor make_kept(const Rows& rows, const LogprobOptions& options, int64_t chunk) {
  const int64_t count = rows.hidden.size(0), vocab = rows.weight.size(0);
  if (rows.hidden.is_cpu()) {
    const bool fits = 4 * count * vocab <= options.kept_bytes.value_or(int64_t{256} << 20);
    if (!fits || options.chunk_tokens > 0 || filters(options)) return {};
    return at::empty({count, vocab}, rows.hidden.options());
  }
  const bool narrow = rows.hidden.element_size() == 2, two_softmaxes = filters(options) && options.unfiltered_too;
  if (!cuda::has_kernels(rows.hidden) || !narrow || two_softmaxes) return {};
  const int64_t most = options.kept_bytes.value_or(int64_t{8} << 30) / (2 * vocab);
  const int64_t kept = count <= most ? count : most / chunk * chunk;
  return kept == 0 ? at::Tensor() : at::empty({kept, vocab}, rows.hidden.options().dtype(at::kHalf));
}

// Gradients of the outputs at the computed rows, fp32 [n]; `unfiltered` is undefined unless it has a softmax of its
// own.
struct RowGradients {
  at::Tensor logprobs, entropy, unfiltered;
};

// A row whose gradients are all zero, as those of a prompt's tokens, has nothing to pass back: on a CPU, where that can
// be looked at, its logits are not made again, nor read.
void drop_zero_gradients(Rows& rows, RowValues& values, RowGradients& grads, at::Tensor& kept) {
  if (!rows.hidden.is_cpu()) return;
  at::Tensor counts = grads.logprobs.ne(0).logical_or_(grads.entropy.ne(0));
  if (grads.unfiltered.defined()) counts.logical_or_(grads.unfiltered.ne(0));
  const at::Tensor some = counts.nonzero().squeeze(1);
  if (some.numel() == counts.numel()) return;
  rows.narrow(some);
  for (at::Tensor* part : {&grads.logprobs, &grads.entropy, &grads.unfiltered, &values.log_sum, &values.entropy,
                           &values.unfiltered_log_sum, &values.logprobs, &kept})
    if (part->defined() && part->numel() > 0) *part = part->index_select(0, some);
}

// The gradient by kept logits, which it takes the place of.
at::Tensor kept_gradient(const Rows& rows, const LogprobOptions& options, const at::Tensor& kept,
                         const RowValues& values, const RowGradients& grads) {
  const auto part = [&](const at::Tensor& all) { return all.slice(0, 0, kept.size(0)); };
  at::Tensor grad = part(grads.logprobs);
  if (filters(options)) grad = grad.masked_fill(part(values.logprobs) == -kInfinity, 0.0);
  const at::Tensor out = kept.view(rows.hidden.scalar_type());
  cuda::softmax_gradient(kept, {part(values.log_sum), part(values.entropy), {}}, grad, part(grads.entropy),
                         part(rows.targets), 1 / options.temperature, out);
  return out;
}

// The gradient of the chunk's logits, in their place or in the dtype of the matrix products.
at::Tensor chunk_gradient(const Rows& rows, const LogprobOptions& options, int64_t begin, int64_t end,
                          at::Tensor logits, const RowValues& values, const RowGradients& grads) {
  const auto part = [&](const at::Tensor& all) { return all.slice(0, begin, end); };
  const at::Tensor targets = part(rows.targets);
  at::Tensor grad = part(grads.logprobs), unfiltered;
  if (grads.unfiltered.defined()) {
    unfiltered = logits.clone();
    const at::Tensor none = at::zeros_like(grad);
    softmax_gradient_(unfiltered, {part(values.unfiltered_log_sum), none}, part(grads.unfiltered), none, targets);
  }
  if (filters(options)) {
    filter_(logits, options);
    grad = grad.masked_fill(part(values.logprobs) == -kInfinity, 0.0);
  }
  if (cuda::has_kernels(logits) && !unfiltered.defined()) {
    const bool fp32 = rows.hidden.scalar_type() == at::kFloat;
    at::Tensor out = fp32 ? logits : at::empty(logits.sizes(), rows.hidden.options());
    cuda::softmax_gradient(logits, {part(values.log_sum), part(values.entropy), {}}, grad, part(grads.entropy), targets,
                           1 / options.temperature, out);
    return out;
  }
  softmax_gradient_(logits, {part(values.log_sum), part(values.entropy)}, grad, part(grads.entropy), targets);
  if (unfiltered.defined()) logits.add_(unfiltered);
  if (options.temperature != 1.0) logits.div_(options.temperature);
  return logits;
}

// grad_hidden[begin, end) = g W and grad_weight += g^T h, where they are defined; grad_weight is fp32.
void accumulate(const Rows& rows, int64_t begin, int64_t end, const at::Tensor& grad_logits, at::Tensor& grad_hidden,
                at::Tensor& grad_weight) {
  const at::Tensor hidden = rows.hidden.slice(0, begin, end);
  const at::Tensor grad = grad_logits.to(hidden.scalar_type());
  if (grad_hidden.defined()) gemm_out(grad_hidden.slice(0, begin, end), grad, rows.weight);
  if (grad_weight.defined()) accumulate_product(grad_weight, grad, hidden);
}

struct Head : Function<Head> {
  // Returns log-probs, entropy, unfiltered log-probs: [N] fp32 each, the last two empty unless wanted.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& hidden, const at::Tensor& weight,
                               const at::Tensor& targets, const LogprobOptions& options, bool differentiable) {
    const Rows rows(hidden, weight, targets, options.vocab);
    const int64_t count = rows.hidden.size(0), total = targets.size(0), chunk = chunk_rows(options, weight);
    const auto fp32 = hidden.options().dtype(at::kFloat);
    RowValues values(count, fp32);
    const at::Tensor kept = differentiable ? make_kept(rows, options, chunk) : at::Tensor();
    const bool in_place = kept.defined() && kept.is_cpu();
    at::Tensor buffer = in_place ? at::Tensor() : make_buffer(rows, chunk);
    const int64_t copied = kept.defined() && !in_place ? kept.size(0) : 0;
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t end = std::min(count, begin + chunk);
      at::Tensor logits = in_place ? kept.slice(0, begin, end) : buffer;
      forward_chunk(rows, options, begin, end, logits, values,
                    begin < copied ? kept.slice(0, begin, end) : at::Tensor());
    }
    if (!filters(options)) values.unfiltered = values.logprobs.clone();
    ctx->save_for_backward(
        {hidden, weight, targets, values.log_sum, values.entropy, values.unfiltered_log_sum, values.logprobs.clone()});
    ctx->saved_data["kept"] = kept;
    ctx->saved_data["temperature"] = options.temperature;
    ctx->saved_data["top_k"] = options.top_k;
    ctx->saved_data["top_p"] = options.top_p;
    ctx->saved_data["chunk"] = chunk;
    ctx->saved_data["batch_invariant"] = options.batch_invariant;
    ctx->saved_data["vocab_group"] = reinterpret_cast<int64_t>(options.vocab.group.native());
    ctx->saved_data["vocab_size"] = options.vocab.vocab_size;
    const auto none = [&] { return at::empty({0}, fp32); };
    return {rows.scatter(values.logprobs, total), options.entropy ? rows.scatter(values.entropy, total) : none(),
            options.unfiltered_too ? rows.scatter(values.unfiltered, total) : none()};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &hidden = saved[0], &weight = saved[1];
    LogprobOptions options;
    options.temperature = ctx->saved_data["temperature"].toDouble();
    options.top_k = ctx->saved_data["top_k"].toInt();
    options.top_p = ctx->saved_data["top_p"].toDouble();
    options.batch_invariant = ctx->saved_data["batch_invariant"].toBool();
    const int64_t chunk = ctx->saved_data["chunk"].toInt();
    options.vocab =
        VocabShard::of(ctx->saved_data["vocab_size"].toInt(),
                       Group(reinterpret_cast<c10d::ProcessGroup*>(ctx->saved_data["vocab_group"].toInt())));

    Rows rows(hidden, weight, saved[2], options.vocab);
    RowValues values(0, saved[3].options());
    values.log_sum = saved[3], values.entropy = saved[4], values.unfiltered_log_sum = saved[5];
    values.logprobs = saved[6];
    RowGradients row_grads = gradients_of_rows(rows, grads, options);
    at::Tensor kept = std::exchange(ctx->saved_data["kept"], at::Tensor()).toTensor();
    const bool in_place = kept.defined() && kept.is_cpu();
    drop_zero_gradients(rows, values, row_grads, kept);
    const int64_t count = rows.hidden.size(0);
    at::Tensor grad_hidden, grad_weight;
    if (ctx->needs_input_grad(0)) grad_hidden = at::empty_like(rows.hidden);
    const at::Tensor sum = grad_sum_of(weight);
    if (ctx->needs_input_grad(1))
      grad_weight = sum.defined() ? sum : at::zeros_like(rows.weight, rows.weight.options().dtype(at::kFloat));
    const int64_t first = kept.defined() && !in_place ? kept.size(0) : 0;
    if (first > 0)
      accumulate(rows, 0, first, kept_gradient(rows, options, kept, values, row_grads), grad_hidden, grad_weight);
    at::Tensor buffer = first < count && !in_place ? make_buffer(rows, chunk) : at::Tensor();
    for (int64_t begin = first; begin < count; begin += chunk) {
      const int64_t end = std::min(count, begin + chunk);
      const at::Tensor logits = in_place ? kept.slice(0, begin, end) : chunk_logits(rows, begin, end, options, buffer);
      const at::Tensor grad = chunk_gradient(rows, options, begin, end, logits, values, row_grads);
      accumulate(rows, begin, end, grad, grad_hidden, grad_weight);
    }
    if (grad_hidden.defined()) grad_hidden = rows.scatter(grad_hidden, hidden.size(0)).to(hidden.scalar_type());
    grad_weight = sum.defined() || !grad_weight.defined() ? at::Tensor() : grad_weight.to(weight.scalar_type());
    return {grad_hidden, grad_weight, at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  // Without a filter both log-probs are one, and so are their gradients.
  static RowGradients gradients_of_rows(const Rows& rows, const variable_list& grads, const LogprobOptions& options) {
    const auto gather = [&](const at::Tensor& grad) {
      return grad.defined() && grad.numel() > 0
                 ? rows.gather(grad)
                 : at::zeros({rows.hidden.size(0)}, rows.hidden.options().dtype(at::kFloat));
    };
    RowGradients result{gather(grads[0]), gather(grads[1]), {}};
    const bool has_unfiltered = grads[2].defined() && grads[2].numel() > 0;
    if (!has_unfiltered) return result;
    if (filters(options)) {
      result.unfiltered = gather(grads[2]);
    } else {
      result.logprobs = result.logprobs + gather(grads[2]);
    }
    return result;
  }
};

void check(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
           const LogprobOptions& options) {
  if (hidden.dim() != 2 || weight.dim() != 2 || hidden.size(1) != weight.size(1) || targets.dim() != 1 ||
      targets.size(0) != hidden.size(0)) {
    fail("log-prob head: got hidden [{}], weight [{}], targets [{}]; wanted [N, H], [V, H], [N]",
         fmt::join(hidden.sizes(), ", "), fmt::join(weight.sizes(), ", "), fmt::join(targets.sizes(), ", "));
  }
  // Targets on a GPU are not looked at: the host would wait. Who makes them there has seen the ids.
  const int64_t largest = targets.is_cpu() && targets.numel() > 0 ? targets.max().item<int64_t>() : -1;
  if (weight.size(0) != options.vocab.rows.size()) {
    fail("log-prob head: the weight has {} rows, wanted {} of a vocabulary of {}", weight.size(0),
         options.vocab.rows.size(), options.vocab.vocab_size);
  }
  if (largest >= options.vocab.vocab_size) {
    fail("log-prob head: target {} is outside the vocabulary of {}", largest, options.vocab.vocab_size);
  }
  if (!(options.temperature > 0)) fail("log-prob head: temperature is {}, wanted more than 0", options.temperature);
  if (!(options.top_p > 0 && options.top_p <= 1)) fail("log-prob head: top_p is {}, wanted (0, 1]", options.top_p);
}

}  // namespace

LogprobResult head_logprobs(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                            const LogprobOptions& wanted) {
  LogprobOptions options = wanted;
  if (options.vocab.vocab_size == 0) options.vocab = VocabShard::of(weight.size(0), Group());
  check(hidden, weight, targets, options);
  variable_list out = Head::apply(hidden, weight, targets, options, at::GradMode::is_enabled());
  return {out[0], options.entropy ? out[1] : at::Tensor(), options.unfiltered_too ? out[2] : at::Tensor()};
}

}  // namespace hexad::modeling
