#include "core/cluster/policy_mismatch.hpp"

#include <cmath>
#include <limits>
#include <string_view>

#include "core/plugin/host/table.hpp"

namespace hexad::cluster {
namespace {

// Overflows where fp32 does, in which the metrics were defined.
double exp_as_f32(double x) {
  const double e = std::exp(x);
  return e > std::numeric_limits<float>::max() ? std::numeric_limits<double>::infinity() : e;
}

double k3(double log_ratio) { return exp_as_f32(log_ratio) - 1 - log_ratio; }

}  // namespace

Mismatch mismatch_of(const TokenPolicies& token) {
  const double p = token.previous, g = token.generation;
  const double mixture = std::log(0.5 * std::exp(p) + 0.5 * std::exp(g));
  return {exp_as_f32(std::abs(g - p)), k3(p - g), k3(g - p), 0.5 * (k3(p - mixture) + k3(g - mixture)),
          -exp_as_f32(token.current - g) * token.current};
}

PolicyMismatch::PolicyMismatch(const plugin::LossPlugin& loss, const data::Batch& batch, double global_valid_tokens)
    : per_token_(1 / (global_valid_tokens + 1e-8)),
      knows_previous_(loss.uses("prev_logprobs") && batch.has("prev_logprobs")),
      staging_(plugin::runtime_of(loss.host())) {
  for (const char* column : {"generation_logprobs", "token_mask", "sample_mask"})
    if (!batch.has(column)) return;
  for (size_t i = 0; i < kMismatchMetrics.size(); ++i)
    if (!loss.reports(kMismatchMetrics[i])) told_.push_back(i);
}

void PolicyMismatch::keep(const BatchView& part, std::span<const hexad_named_tensor> outputs) {
  if (told_.empty()) return;
  for (const hexad_named_tensor& output : outputs) {
    if (output.name != std::string_view("logprobs") || !output.tensor) continue;
    DLTensor* copy = staging_.zeros_like(*output.tensor, output.tensor->device);
    staging_.copy(*output.tensor, *copy);
    kept_.push_back({&part.batch(), copy});
  }
}

void PolicyMismatch::add_to(plugin::MetricSum& metrics) {
  if (kept_.empty()) return;
  Mismatch sums = {};
  for (const Kept& each : kept_) {
    const DLTensor* on_host = staging_.on(each.logprobs, {kDLCPU, 0});
    add(*each.batch, {HEXAD_F32(on_host), static_cast<size_t>(each.batch->tokens())}, sums);
  }
  for (const size_t i : told_)
    if (!metrics.contains(kMismatchMetrics[i])) metrics.set(kMismatchMetrics[i], sums[i], plugin::ReduceAs::sum);
}

void PolicyMismatch::add(const data::Batch& batch, std::span<const float> logprobs, Mismatch& sums) const {
  const auto generation = batch.at("generation_logprobs").span<float>(), mask = batch.at("token_mask").span<float>();
  const auto previous = knows_previous_ ? batch.at("prev_logprobs").span<float>() : std::span<float>();
  for (int64_t row = 0; row < batch.size(); ++row) {
    const double sample = batch.row<float>("sample_mask", row)[0];
    const auto begin = static_cast<size_t>(batch.cu_seqlens()[row]);
    for (size_t t = begin + 1; t < begin + static_cast<size_t>(batch.length(row)); ++t) {
      const double weight = mask[t] * sample * per_token_;
      if (weight == 0) continue;
      // A token that a sampling filter removes counts with 0, as NeMo-RL has it.
      const double current = std::isinf(logprobs[t]) ? 0 : logprobs[t];
      const TokenPolicies token{current, knows_previous_ ? previous[t] : current, generation[t]};
      const Mismatch parts = mismatch_of(token);
      for (size_t i = 0; i < parts.size(); ++i) sums[i] += parts[i] * weight;
    }
  }
}

}  // namespace hexad::cluster
