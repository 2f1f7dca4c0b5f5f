// clipped_pg and nll against vectors of NeMo-RL's own loss functions, through the loaded shared objects.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/base/error.hpp"
#include "tests/plugins/loss/filtered_softmax.hpp"
#include "tests/plugins/loss/loss_case.hpp"

namespace {

using namespace loss_case;

// [B, S, V] logits with the ids that they score: position (b, t) of the batch scores ids[b, t + 1].
struct Logits {
  golden::Tensor logits;
  golden::Tensor ids;         // [B, S]
  std::vector<int64_t> rows;  // first index of each sequence in the flattened logits
  std::vector<int64_t> lengths;
  Filter filter;

  int64_t vocab() const { return logits.shape.back(); }
  std::vector<double> row(int64_t index) const {
    const auto first = logits.data.begin() + index * vocab();
    return {first, first + vocab()};
  }
  size_t id(size_t b, int64_t t) const {
    return static_cast<size_t>(ids.data[b * static_cast<size_t>(ids.shape[1]) + static_cast<size_t>(t)]);
  }
  // Packed log-probs [T]: 0 at first positions, -inf where the filter removed the token.
  std::vector<float> logprobs(const Filter& used) const {
    std::vector<float> packed;
    for (size_t b = 0; b < lengths.size(); ++b) {
      packed.push_back(0);
      for (int64_t t = 1; t < lengths[b]; ++t) {
        packed.push_back(static_cast<float>(std::log(filtered_softmax(row(rows[b] + t - 1), used)[id(b, t)])));
      }
    }
    return packed;
  }
  // Adds the gradient of the logits, given that of the packed log-probs.
  void add_grad(const std::vector<float>& grad, const Filter& used, std::vector<double>& out) const {
    size_t at = 0;
    for (size_t b = 0; b < lengths.size(); ++b) {
      ++at;
      for (int64_t t = 1; t < lengths[b]; ++t, ++at) {
        const std::vector<double> p = filtered_softmax(row(rows[b] + t - 1), used);
        if (grad[at] == 0) continue;
        for (size_t v = 0; v < p.size(); ++v) {
          out[static_cast<size_t>((rows[b] + t - 1) * vocab()) + v] += grad[at] * ((v == id(b, t)) - p[v]);
        }
      }
    }
  }
};

Filter filter_of(const Json& config) {
  Filter filter;
  if (!config.contains("policy")) return filter;
  const Json& generation = config.at("policy").at("generation");
  if (generation.contains("top_k") && generation.at("top_k").is_number()) filter.top_k = generation.at("top_k");
  if (generation.contains("top_p") && generation.at("top_p").is_number()) filter.top_p = generation.at("top_p");
  filter.top_k = std::max<int64_t>(filter.top_k, 0);
  return filter;
}

Json section_of(const Json& test_case) {
  const Json config = test_case.at("config");
  return config.contains("loss_fn") && config.at("loss_fn").is_object() ? config.at("loss_fn") : Json::object();
}

// The mean of sequences' importance weights under their own masks. NeMo-RL's sampling_importance_ratio multiplies every
// weight of a padded micro-batch by every mask, so that it depends on what shares a micro-batch; of packed sequences it
// is this.
double mean_of_sequence_weights(const Json& options, const Packed& batch) {
  const bool on_policy = options.value("force_on_policy_ratio", false);
  const auto& previous = batch.tokens.at(on_policy ? "logprobs" : "prev_logprobs");
  const auto &generation = batch.tokens.at("generation_logprobs"), &mask = batch.tokens.at("token_mask");
  const Json type = options.value("truncated_importance_sampling_type", Json());
  const auto bound = [&](const char* key) {
    const Json value = options.value(key, Json());
    return value.is_null() ? 0.0 : golden::number(value);
  };
  const double most = bound("truncated_importance_sampling_ratio"),
               least = bound("truncated_importance_sampling_ratio_min");
  double sum = 0;
  for (size_t row = 0; row + 1 < batch.cu_seqlens.size(); ++row) {
    const double counts = batch.samples.at("sample_mask")[row];
    double drift = 0;
    for (auto t = static_cast<size_t>(batch.cu_seqlens[row]) + 1; t < static_cast<size_t>(batch.cu_seqlens[row + 1]);
         ++t) {
      const double before = std::isinf(previous[t]) ? 0 : previous[t];  // what a filter removed
      drift += (before - generation[t]) * mask[t];
    }
    double weight = std::exp(drift * counts);
    if (weight > std::numeric_limits<float>::max()) weight = 0;
    if (type == "tis") weight = std::clamp(weight, least, most);
    if (type == "icepop" && (weight < least || weight > most)) weight = 0;
    sum += weight * counts;
  }
  return sum / (batch.global_valid_sequences + 1e-8);
}

// Compares with what NeMo-RL gave, but for the metric above.
void check_clipped_pg(const Json& test_case, const Packed& batch, const Result& got, Json expected) {
  const Json options = section_of(test_case);
  if (options.value("sequence_level_importance_ratios", false))
    expected["metrics"]["sampling_importance_ratio"] = mean_of_sequence_weights(options, batch);
  check_value(got, expected);
}

// Runs the loss on log-probs made from logits and compares loss, metrics and the gradient of the logits.
void check_from_logits(LossPlugin& loss, const Json& test_case, Logits logits, bool padded, const Json& expected_grad) {
  const Json& inputs = test_case.at("inputs");
  Packed batch = pack(inputs, {}, 0, logits.lengths);
  batch.padded_length = padded ? logits.lengths[0] : 0;
  batch.tokens.erase("logits");
  const bool filtered = logits.filter.top_k > 0 || logits.filter.top_p < 1;
  batch.tokens["logprobs"] = logits.logprobs(logits.filter);
  if (filtered) batch.tokens["logprobs_unfiltered"] = logits.logprobs({});
  const Result got = compute(loss, batch);
  check_clipped_pg(test_case, batch, got, test_case.at("expected"));

  std::vector<double> grad(logits.logits.data.size());
  logits.add_grad(got.grads.at("logprobs"), logits.filter, grad);
  if (filtered) logits.add_grad(got.grads.at("logprobs_unfiltered"), {}, grad);
  golden::check_close(grad, golden::tensor(expected_grad).data, kRelative, kAbsolute);
}

void check_batch_logits(LossPlugin& loss, const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  Logits logits{golden::tensor(inputs.at("logits")),
                golden::tensor(inputs.at("input_ids")),
                {},
                {},
                filter_of(test_case.at("config"))};
  for (int64_t b = 0; b < logits.ids.shape[0]; ++b) {
    logits.rows.push_back(b * logits.ids.shape[1]);
    logits.lengths.push_back(logits.ids.shape[1]);
  }
  check_from_logits(loss, test_case, logits, true, test_case.at("expected").at("grad_logits"));
}

void check_packed_logits(LossPlugin& loss, const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  Logits logits{golden::tensor(inputs.at("packed_logits")),
                golden::tensor(inputs.at("input_ids")),
                {},
                {},
                filter_of(test_case.at("config"))};
  const auto cu = golden::tensor(inputs.at("cu_seqlens")).data,
             padded = golden::tensor(inputs.at("cu_seqlens_padded")).data;
  for (size_t b = 0; b + 1 < cu.size(); ++b) {
    logits.rows.push_back(static_cast<int64_t>(padded[b]));
    logits.lengths.push_back(static_cast<int64_t>(cu[b + 1] - cu[b]));
  }
  check_from_logits(loss, test_case, logits, false, test_case.at("expected").at("grad_packed_logits"));
}

// [B, S] arrays and [B, S - 1] log-probs.
void check_logprobs(LossPlugin& loss, const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const Json& expected = test_case.at("expected");
  const golden::Tensor logprobs = golden::tensor(inputs.at("next_token_logprobs"));
  const int64_t rows = logprobs.shape[0], columns = logprobs.shape[1] + 1;
  Packed batch = pack_all(inputs, {{"logprobs", logprobs}}, rows, columns);
  const Result got = compute(loss, batch);
  check_clipped_pg(test_case, batch, got, expected);
  golden::check_close(next_token_grad(got.grads.at("logprobs"), rows, columns),
                      golden::tensor(expected.at("grad_next_token_logprobs")).data, kRelative, kAbsolute);
}

// The same rows whole and in parts, under one global normalizer; the gradients of the parts make up the whole's.
void check_micro_batches(LossPlugin& loss, const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const Json& expected = test_case.at("expected");
  const golden::Tensor logprobs = golden::tensor(inputs.at("next_token_logprobs"));
  const int64_t rows = logprobs.shape[0], columns = logprobs.shape[1] + 1;
  Packed whole = pack_all(inputs, {{"logprobs", logprobs}}, rows, columns);
  check_clipped_pg(test_case, whole, compute(loss, whole), expected.at("whole"));
  std::vector<float> grad;
  for (const Json& part : expected.at("parts")) {
    const int64_t begin = part.at("rows")[0], end = part.at("rows")[1];
    Packed batch =
        pack(inputs, {{"logprobs", logprobs}}, begin, std::vector<int64_t>(static_cast<size_t>(end - begin), columns));
    batch.padded_length = columns;
    const Result got = compute(loss, batch);
    check_clipped_pg(test_case, batch, got, part);
    const auto& part_grad = got.grads.at("logprobs");
    grad.insert(grad.end(), part_grad.begin(), part_grad.end());
  }
  golden::check_close(next_token_grad(grad, rows, columns),
                      golden::tensor(expected.at("grad_next_token_logprobs")).data, kRelative, kAbsolute);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("clipped_pg agrees with NeMo-RL") {
    golden::for_each_case("loss_clipped_pg", [](const Json& test_case) {
      const Json& expected = test_case.at("expected");
      if (expected.contains("error")) {
        CHECK_THROWS_AS(make_loss("clipped_pg", section_of(test_case)), hexad::Error);
        return;
      }
      const auto loss = make_loss("clipped_pg", section_of(test_case));
      if (expected.contains("parts")) {
        check_micro_batches(*loss, test_case);
      } else if (expected.contains("grad_logits")) {
        check_batch_logits(*loss, test_case);
      } else if (expected.contains("grad_packed_logits")) {
        check_packed_logits(*loss, test_case);
      } else {
        check_logprobs(*loss, test_case);
      }
    });
  }

  TEST_CASE("nll agrees with NeMo-RL") {
    const auto is_nll = [](const Json& test_case) { return golden::prefix(test_case).starts_with("nll"); };
    golden::for_each_case(
        "loss_other",
        [](const Json& test_case) {
          const auto loss = make_loss("nll", section_of(test_case));
          const bool logits = test_case.at("inputs").contains("logits");
          logits ? check_batch_logits(*loss, test_case) : check_logprobs(*loss, test_case);
        },
        is_nll);
  }
}
