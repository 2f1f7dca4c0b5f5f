// dpo and preference: against vectors of NeMo-RL's own loss functions, and what both ask of their rows.
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.hpp"
#include "tests/plugins/loss/loss_case.hpp"

namespace {

using namespace loss_case;

std::vector<int64_t> pair_ids(size_t rows) {
  std::vector<int64_t> ids;
  for (size_t row = 0; row < rows; ++row) ids.push_back(static_cast<int64_t>(row / 2));
  return ids;
}

bool begins(const Json& test_case, const char* with) { return golden::prefix(test_case).starts_with(with); }

// [B, S] values that stand where they are predicted from, as [B, S - 1] of the tokens that they are of: NeMo-RL's DPO
// rolls the reference log-probs so.
golden::Tensor unrolled(const golden::Tensor& rolled) {
  golden::Tensor result = rolled;
  result.shape[1] -= 1;
  result.data.clear();
  for (int64_t b = 0; b < rolled.shape[0]; ++b)
    for (int64_t t = 0; t + 1 < rolled.shape[1]; ++t)
      result.data.push_back(rolled.data[static_cast<size_t>(b * rolled.shape[1] + t)]);
  return result;
}

Packed two_rows() {
  Packed batch;
  batch.cu_seqlens = {0, 3, 5};
  batch.tokens = {{"logprobs", {0, -1, -2, 0, -1}},
                  {"reference_policy_logprobs", {0, -1, -2, 0, -1}},
                  {"token_mask", {0, 1, 1, 0, 1}}};
  batch.samples = {{"sample_mask", {1, 1}}};
  batch.unit_id = {4, 4};
  batch.global_valid_tokens = 3;
  batch.global_valid_sequences = 2;
  return batch;
}

std::string message_of(LossPlugin& loss, Packed batch) {
  try {
    compute(loss, batch);
  } catch (const hexad::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("preference agrees with NeMo-RL") {
    golden::for_each_case(
        "loss_other",
        [](const Json& test_case) {
          const Json &inputs = test_case.at("inputs"), &expected = test_case.at("expected");
          const auto loss = make_loss("preference", Json::object());
          const golden::Tensor logits = golden::tensor(inputs.at("logits"));  // [B, 1]
          Packed batch;
          for (size_t row = 0; row < logits.data.size(); ++row) batch.cu_seqlens.push_back(batch.cu_seqlens.back() + 1);
          batch.samples["sequence_scores"].assign(logits.data.begin(), logits.data.end());
          const golden::Tensor mask = golden::tensor(inputs.at("sample_mask"));
          batch.samples["sample_mask"].assign(mask.data.begin(), mask.data.end());
          batch.unit_id = pair_ids(logits.data.size());
          batch.global_valid_sequences = golden::number(inputs.at("global_valid_seqs"));
          const Result got = compute(*loss, batch);
          check_value(got, expected);
          const auto& grad = got.grads.at("sequence_scores");
          golden::check_close({grad.begin(), grad.end()}, golden::tensor(expected.at("grad_logits")).data, kRelative,
                              kAbsolute);
        },
        [](const Json& test_case) { return begins(test_case, "preference"); });
  }

  TEST_CASE("dpo agrees with NeMo-RL") {
    golden::for_each_case(
        "loss_other",
        [](const Json& test_case) {
          const Json &inputs = test_case.at("inputs"), &expected = test_case.at("expected");
          const auto loss = make_loss("dpo", test_case.at("config").at("dpo"));
          const golden::Tensor logprobs = golden::tensor(inputs.at("next_token_logprobs"));
          const golden::Tensor reference = unrolled(golden::tensor(inputs.at("reference_policy_logprobs")));
          const int64_t rows = logprobs.shape[0], columns = logprobs.shape[1] + 1;
          Packed batch =
              pack_all(inputs, {{"logprobs", logprobs}, {"reference_policy_logprobs", reference}}, rows, columns);
          batch.unit_id = pair_ids(static_cast<size_t>(rows));
          const Result got = compute(*loss, batch);
          check_value(got, expected);
          golden::check_close(next_token_grad(got.grads.at("logprobs"), rows, columns),
                              golden::tensor(expected.at("grad_next_token_logprobs")).data, kRelative, kAbsolute);
        },
        [](const Json& test_case) { return begins(test_case, "dpo"); });
  }
}

TEST_CASE("at the first step the policy is the reference: the preference loss is ln 2 and half of beta pulls") {
  const auto loss = make_loss("dpo", {{"reference_policy_kl_penalty", 0.5}});
  Packed batch = two_rows();
  const Result got = compute(*loss, batch);
  CHECK(got.loss == doctest::Approx(std::log(2.0)));
  CHECK(got.metrics.at("preference_loss") == doctest::Approx(0.693147));
  CHECK(got.metrics.at("accuracy") == 0);
  const std::vector<float> pull = {0, -0.25f, -0.25f, 0, 0.25f};
  for (size_t t = 0; t < pull.size(); ++t) CHECK(got.grads.at("logprobs")[t] == doctest::Approx(pull[t]));
}

TEST_CASE("rows that are no pairs are refused, by both losses") {
  const auto dpo = make_loss("dpo", Json::object());
  Packed parted = two_rows();
  parted.unit_id = {4, 5};
  CHECK(message_of(*dpo, parted).find("row 0 (unit_id 4) is alone: rows come in pairs of one unit_id") !=
        std::string::npos);
  Packed without = two_rows();
  without.unit_id.clear();
  CHECK(message_of(*dpo, without).find("needs 'unit_id', which this batch does not have") != std::string::npos);
  const auto preference = make_loss("preference", Json::object());
  Packed odd;
  odd.cu_seqlens = {0, 1, 2, 3};
  odd.samples = {{"sequence_scores", {1, 2, 3}}, {"sample_mask", {1, 1, 1}}};
  odd.unit_id = {0, 0, 1};
  CHECK(message_of(*preference, odd).find("row 2 (unit_id 1) is alone") != std::string::npos);
}

TEST_CASE("an infinite reward makes no good loss, but in a pair outside the loss it counts nothing") {
  const auto preference = make_loss("preference", Json::object());
  Packed batch;
  batch.cu_seqlens = {0, 1, 2, 3, 4};
  batch.samples = {{"sequence_scores", {INFINITY, 0, 1, 0}}, {"sample_mask", {1, 1, 1, 1}}};
  batch.unit_id = {0, 0, 1, 1};
  batch.global_valid_sequences = 4;
  CHECK(std::isnan(compute(*preference, batch).loss));
  batch.samples["sample_mask"] = {0, 0, 1, 1};
  batch.global_valid_sequences = 2;
  const Result got = compute(*preference, batch);
  CHECK(std::isfinite(got.loss));
  CHECK(got.metrics.at("num_valid_samples") == 1);
}
