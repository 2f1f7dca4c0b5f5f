// value: against vectors of NeMo-RL's MseValueLossFn, and what it refuses.
#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "tests/plugins/loss/loss_case.hpp"

namespace {

using namespace loss_case;

std::string refusal_of(const Json& section) {
  try {
    make_loss("value", section);
  } catch (const hexad::Error& error) {
    return error.what();
  }
  return "";
}

// One sequence of three tokens, the last two of which count.
Packed three_tokens(std::vector<float> values) {
  Packed batch;
  batch.cu_seqlens = {0, 3};
  batch.tokens = {
      {"token_values", std::move(values)}, {"values", {0, 0, 0}}, {"returns", {9, 1, 1}}, {"token_mask", {0, 1, 1}}};
  batch.samples = {{"sample_mask", {1}}};
  batch.global_valid_tokens = 2;
  batch.global_valid_sequences = 1;
  return batch;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("value agrees with NeMo-RL") {
    golden::for_each_case(
        "loss_other",
        [](const Json& test_case) {
          const Json &inputs = test_case.at("inputs"), &expected = test_case.at("expected");
          const auto loss = make_loss("value", test_case.at("config").at("value_loss_fn"));
          const golden::Tensor values = golden::tensor(inputs.at("logits"));  // [B, S, 1]
          Packed batch = pack_all(inputs, {}, values.shape[0], values.shape[1]);
          batch.tokens["token_values"].assign(values.data.begin(), values.data.end());
          const Result got = compute(*loss, batch);
          check_value(got, expected);
          const auto& grad = got.grads.at("token_values");
          golden::check_close({grad.begin(), grad.end()}, golden::tensor(expected.at("grad_logits")).data, kRelative,
                              kAbsolute);
        },
        [](const Json& test_case) { return golden::prefix(test_case).starts_with("value"); });
  }
}

TEST_CASE("a value that has left its range is not pulled where the clipped one is farther from the return") {
  Packed batch = three_tokens({5, 0.75f, 3});
  const Result got = compute(*make_loss("value", {{"cliprange", 0.5}}), batch);
  // 0.75 was clipped to 0.5, farther from 1; 3 was clipped to 0.5, nearer to 1.
  CHECK(got.grads.at("token_values") == std::vector<float>{0, 0, 1});
  CHECK(got.loss == doctest::Approx((0.125 + 2) / 2));
  CHECK(got.metrics.at("vf_clipfrac") == doctest::Approx(0.5));
}

TEST_CASE("without a range the values before the update are not asked for") {
  for (const Json& section : {Json::object(), Json{{"cliprange", nullptr}}, Json{{"cliprange", 0}}}) {
    Packed batch = three_tokens({5, 0.75f, 3});
    batch.tokens.erase("values");
    CHECK(compute(*make_loss("value", section), batch).loss == doctest::Approx((0.03125 + 2) / 2));
  }
}

TEST_CASE("scale multiplies the loss and its gradient") {
  Packed batch = three_tokens({5, 0.75f, 3});
  const Result plain = compute(*make_loss("value", Json::object()), batch);
  for (const float scale : {0.5f, 3.0f}) {
    const Result got = compute(*make_loss("value", {{"scale", scale}}), batch);
    CHECK(got.loss == doctest::Approx(scale * plain.loss));
    for (size_t i = 0; i < 3; ++i)
      CHECK(got.grads.at("token_values")[i] == doctest::Approx(scale * plain.grads.at("token_values")[i]));
  }
}

TEST_CASE("a scale or a range that is none is refused") {
  CHECK(refusal_of({{"scale", 0}}).find("scale: got 0; the weight of the loss is a finite number above 0") !=
        std::string::npos);
  CHECK(refusal_of({{"cliprange", -0.5}}).find("cliprange: got -0.5; give a finite number of at least 0") !=
        std::string::npos);
}
