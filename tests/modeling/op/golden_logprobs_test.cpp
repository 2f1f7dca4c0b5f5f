// logprobs.json: what NeMo-RL's workers return for given logits. The head's weight is the identity here.
#include "core/algorithm/reward/reward.hpp"
#include "modeling/op/attention/packed_attention.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"
#include "modeling/op/row/logit_rows.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/golden_tensor.hpp"

namespace hexad::modeling {
namespace {

using golden::Json;

constexpr double kRelative = 1e-5, kAbsolute = 1e-6, kGradient = 1e-4;

void check_close(const at::Tensor& got, const at::Tensor& want, double relative = kRelative) {
  REQUIRE(got.sizes() == want.sizes());
  CHECK(at::isclose(got.to(at::kDouble), want.to(at::kDouble), relative, kAbsolute, true).all().item<bool>());
}

// NeMo-RL's workers do to log-probs what Hexad's controller does.
at::Tensor mask_out_neg_inf(const at::Tensor& logprobs, const at::Tensor& mask) {
  const at::Tensor result = logprobs.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
  algorithm::zero_removed({result.data_ptr<float>(), static_cast<size_t>(result.numel())});
  return result * mask;
}

LogprobOptions options_of(const Json& config) {
  LogprobOptions options;
  options.temperature = config.value("temperature", 1.0);
  options.top_p = config.value("top_p", 1.0);
  if (config.contains("top_k") && !config["top_k"].is_null()) options.top_k = config["top_k"];
  return options;
}

at::Tensor logprobs_of(const at::Tensor& logits, const at::Tensor& targets, const LogprobOptions& options = {}) {
  return head_logprobs(logits, at::eye(logits.size(1), logits.options()), targets, options).logprobs;
}

void check_filter(const Json& test_case) {
  const LogprobOptions options = options_of(test_case.at("config"));
  const at::Tensor logits = to_tensor(test_case.at("inputs").at("logits"));
  const at::Tensor want = to_tensor(test_case.at("expected").at("filtered_logits"));
  const at::Tensor keep = top_k_top_p_mask(logits, options.top_k, options.top_p);
  const at::Tensor filtered = logits.masked_fill(keep.logical_not(), -INFINITY);
  if (test_case.contains("fragile")) {  // which of several ties survive is up to the sort
    CHECK(keep.sum(1).equal(want.isfinite().sum(1)));
    check_close(filtered.exp().sum(1), want.exp().sum(1));
    return;
  }
  check_close(filtered, want);
  if (!test_case.at("expected").contains("grad_logits")) return;
  const at::Tensor grad = to_tensor(test_case.at("inputs").at("grad_output"));
  check_close(grad * keep, to_tensor(test_case.at("expected").at("grad_logits")));
}

void check_padded_policy(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const at::Tensor ids = to_tensor(inputs.at("input_ids")), logits = to_tensor(inputs.at("logits"));
  const at::Tensor mask = to_tensor(inputs.at("token_mask")) * to_tensor(inputs.at("sample_mask")).unsqueeze(1);
  const at::Tensor rows = at::arange(0, ids.numel() + 1, ids.size(1));
  const at::Tensor targets = next_token_targets(ids.flatten(), rows);
  LogprobOptions options = options_of(test_case.at("config").at("policy").at("generation"));
  const at::Tensor want = to_tensor(test_case.at("expected").at("logprobs"));
  const auto got = [&](const at::Tensor& z) {
    const at::Tensor logprobs = at_predicted_token(logprobs_of(z.flatten(0, 1), targets, options)).view_as(ids);
    return mask_out_neg_inf(logprobs, mask);
  };
  if (logits.scalar_type() == at::kFloat || options.temperature == 1.0) return check_close(got(logits), want);
  // NeMo-RL rounds bf16 logits to bf16 once more after dividing them by the temperature; the op divides in fp32. Equal
  // on equal logits; without a filter, which could turn on the rounding, the op differs by that rounding at most.
  if (options.top_p == 1.0 && options.top_k <= 0) {
    const double rounding = std::ldexp((logits.abs().max() / options.temperature).item<double>(), -8);
    CHECK(distance(got(logits), want) <= rounding);
  }
  const at::Tensor rounded = logits / options.temperature;
  options.temperature = 1.0;
  check_close(got(rounded), want);
}

void check_packed_policy(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const at::Tensor ids = to_tensor(inputs.at("packed_input_ids"))[0], logits = to_tensor(inputs.at("packed_logits"))[0];
  const at::Tensor lengths = to_tensor(inputs.at("input_lengths"));
  const at::Tensor cu_seqlens = at::cat({at::zeros({1}, at::kLong), lengths.cumsum(0)});
  const at::Tensor logprobs = at_predicted_token(logprobs_of(logits, next_token_targets(ids, cu_seqlens)));
  const at::Tensor want = to_tensor(test_case.at("expected").at("logprobs"));
  at::Tensor got = at::zeros_like(want);
  for (int64_t i = 0; i < lengths.numel(); ++i) {
    const int64_t begin = cu_seqlens[i].item<int64_t>(), length = lengths[i].item<int64_t>();
    got[i].slice(0, 0, length).copy_(logprobs.slice(0, begin, begin + length));
  }
  check_close(got, want);
}

// Padded to a multiple: pads count as tokens of their sequence. Row i holds the predictions of its first tokens.
void check_megatron_packed(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const at::Tensor ids = to_tensor(inputs.at("packed_input_ids"))[0];
  const at::Tensor logits = to_tensor(inputs.at("packed_logits"))[0].set_requires_grad(true);
  const PackedLayout layout = packed_layout(to_tensor(inputs.at("cu_seqlens_padded")), at::kCPU);
  const at::Tensor logprobs = logprobs_of(logits, next_token_targets(ids, at::tensor(layout.offsets)));
  const at::Tensor want = to_tensor(test_case.at("expected").at("next_token_logprobs"));
  std::vector<at::Tensor> rows;
  for (size_t i = 0; i + 1 < layout.offsets.size(); ++i) {
    const int64_t count = std::min(layout.offsets[i + 1] - layout.offsets[i] - 1, want.size(1));
    const at::Tensor row = logprobs.slice(0, layout.offsets[i], layout.offsets[i] + count);
    rows.push_back(at::constant_pad_nd(row, {0, want.size(1) - count}));
  }
  const at::Tensor got = at::stack(rows);
  check_close(got, want);
  got.backward(to_tensor(inputs.at("grad_output")));
  check_close(logits.grad(), to_tensor(test_case.at("expected").at("grad_packed_logits"))[0], kGradient);
}

void check_next_token(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const at::Tensor ids = to_tensor(inputs.at("input_ids"));
  const at::Tensor logits = to_tensor(inputs.at("logits")).set_requires_grad(true);
  const at::Tensor rows = at::arange(0, ids.numel() + 1, ids.size(1));
  const at::Tensor logprobs = logprobs_of(logits.flatten(0, 1), next_token_targets(ids.flatten(), rows));
  const at::Tensor got = logprobs.view_as(ids).slice(1, 0, -1);
  check_close(got, to_tensor(test_case.at("expected").at("next_token_logprobs")));
  got.backward(to_tensor(inputs.at("grad_output")));
  check_close(logits.grad(), to_tensor(test_case.at("expected").at("grad_logits")), kGradient);
}

void check_mask_out(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const at::Tensor got = mask_out_neg_inf(to_tensor(inputs.at("logprobs")), to_tensor(inputs.at("mask")));
  check_close(got, to_tensor(test_case.at("expected").at("logprobs")));
}

void check_case(const Json& test_case) {
  const std::string kind = golden::prefix(test_case);
  if (kind == "filter") return check_filter(test_case);
  if (kind == "policy_logprobs") return check_padded_policy(test_case);
  if (kind == "policy_logprobs_packed") return check_packed_policy(test_case);
  if (kind == "megatron_logprobs_packed") return check_megatron_packed(test_case);
  if (kind == "next_token_logprobs") return check_next_token(test_case);
  if (kind == "mask_out_neg_inf") return check_mask_out(test_case);
  throw golden::Skip{"no check for this kind of case"};
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("log-probs equal NeMo-RL's") { golden::for_each_case("logprobs", check_case); }
}

}  // namespace hexad::modeling
