// Whole models against transformers: logits, log-probs, gradients, greedy continuation; packed and right-padded.
#include "modeling/op/linear.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"
#include "tests/modeling/support/model_case.hpp"

namespace hexad::modeling {
namespace {

constexpr double kLogits = 5e-5, kGradient = 1e-4;

at::Tensor packed_hidden(const ModelCase& model, const at::Tensor& ids, const at::Tensor& cu_seqlens) {
  const PackedLayout layout = packed_layout(cu_seqlens, ids.device());
  PackedAttention attention(model.config, layout);
  return forward_hidden(model.config, model.lookup(), ids, layout.positions, attention);
}

void check_packed(const ModelCase& model) {
  const at::Tensor ids = model.recorded.at("packed_input_ids"), cu_seqlens = model.recorded.at("cu_seqlens");
  const at::Tensor hidden = packed_hidden(model, ids, cu_seqlens);
  CHECK(distance(apply_linear(hidden, model.head()), model.recorded.at("packed_logits")) <= kLogits);

  for (int64_t chunk : {0, 7}) {
    LogprobOptions options;
    options.chunk_tokens = chunk;
    const at::Tensor targets = next_token_targets(ids, cu_seqlens);
    const at::Tensor logprobs = at_predicted_token(head_logprobs(hidden, model.head(), targets, options).logprobs);
    CHECK(distance(logprobs, model.recorded.at("packed_token_logprobs")) <= kLogits);
    CHECK(-logprobs.sum().item<double>() ==
          doctest::Approx(golden::number(model.expected.at("nll_sum"))).epsilon(1e-5));
  }
}

void check_gradients(const ModelCase& model) {
  const at::Tensor ids = model.recorded.at("packed_input_ids"), cu_seqlens = model.recorded.at("cu_seqlens");
  const at::Tensor hidden = packed_hidden(model, ids, cu_seqlens);
  head_logprobs(hidden, model.head(), next_token_targets(ids, cu_seqlens)).logprobs.sum().neg().backward();
  const auto& norms = model.expected.at("grad_norms");
  CHECK(norms.size() == model.trained().size());
  for (const auto& [name, norm] : norms.items()) {
    INFO("gradient of " << name);
    CHECK(model.grad(name).norm().item<double>() == doctest::Approx(golden::number(norm)).epsilon(kGradient));
  }
  for (const auto& [name, want] : model.expected.at("grads").items()) {
    INFO("gradient of " << name);
    CHECK(relative_distance(model.grad(name), to_tensor(want)) <= kGradient);
  }
}

void check_padded(const ModelCase& model) {
  const at::Tensor ids = model.recorded.at("input_ids"), mask = model.recorded.at("attention_mask");
  const int64_t batch = ids.size(0), length = ids.size(1);
  const at::Tensor positions = at::arange(length, ids.options()).repeat(batch);
  PaddedAttention attention(model.config, batch);
  const at::Tensor hidden = forward_hidden(model.config, model.lookup(), ids.flatten(), positions, attention);
  const at::Tensor logits = apply_linear(hidden, model.head());
  CHECK(at::isfinite(logits).all().item<bool>());
  const at::Tensor real = logits.index_select(0, mask.flatten().nonzero().squeeze(1));
  CHECK(distance(real, model.recorded.at("packed_logits")) <= kLogits);
}

void check_greedy(const ModelCase& model) {
  const at::NoGradGuard no_grad;
  const auto& greedy = model.expected.at("greedy");
  std::vector<int64_t> ids = greedy.at("prompt");
  std::vector<int64_t> got;
  for (size_t step = 0; step < greedy.at("new_tokens").size(); ++step) {
    const int64_t length = int64_t(ids.size());
    const at::Tensor hidden =
        packed_hidden(model, at::tensor(ids).to(model.head().device()), at::tensor(std::vector<int64_t>{0, length}));
    ids.push_back(apply_linear(hidden.slice(0, length - 1), model.head()).argmax().item<int64_t>());
    got.push_back(ids.back());
  }
  const std::vector<int64_t> want = greedy.at("new_tokens");
  CHECK(got == want);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("models equal transformers") {
    for_each_model(4, [](const ModelCase& model) {
      check_packed(model);
      check_gradients(model);
      check_padded(model);
      check_greedy(model);
    });
  }
}

}  // namespace hexad::modeling
