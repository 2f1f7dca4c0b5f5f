// Golden loss cases ([B, S] batches of NeMo-RL) run through the loaded plugins over packed sequences.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/kind/loss_plugin.hpp"
#include "core/plugin/metric_sum.hpp"
#include "tests/support/golden.hpp"

namespace loss_case {

using golden::Json;
using hexad::plugin::LossPlugin;

// A loss loaded from this build's plugin folder.
inline std::unique_ptr<LossPlugin> make_loss(const std::string& name, const Json& section) {
  static hexad::plugin::Registry registry({}, nullptr);
  const auto& plugin = registry.load(hexad::plugin::Kind::loss, name);
  return std::make_unique<LossPlugin>(plugin, hexad::plugin::CallContext{},
                                      hexad::plugin::PluginConfig("loss_fn", section));
}

// Rows of a [B, S] batch as packed sequences; values lie at the position of their token.
struct Packed {
  std::vector<int64_t> cu_seqlens{0};
  std::map<std::string, std::vector<float>> tokens, samples;
  std::vector<int64_t> unit_id;  // of every sequence, or empty
  double global_valid_tokens = 0, global_valid_sequences = 0;
  int64_t padded_length = 0;

  int64_t num_sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
  int64_t num_tokens() const { return cu_seqlens.back(); }
};

// Appends the values of rows [begin, end), each cut to its length. A [B, S - 1] array of next-token values gains a
// first 0.
inline std::vector<float> pack_rows(const golden::Tensor& tensor, int64_t begin, const std::vector<int64_t>& lengths,
                                    bool next_token) {
  std::vector<float> packed;
  const int64_t width = tensor.shape[1];
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto row = tensor.data.begin() + (begin + static_cast<int64_t>(i)) * width;
    if (next_token) packed.push_back(0);
    packed.insert(packed.end(), row, row + lengths[i] - (next_token ? 1 : 0));
  }
  return packed;
}

// Tokens of rows with a positive reward that a loss over the whole [B, S] batch counts; 0 without rewards.
inline float positive_tokens(const Json& inputs) {
  if (!inputs.contains("rewards")) return 0;
  const golden::Tensor mask = golden::tensor(inputs.at("token_mask")), rewards = golden::tensor(inputs.at("rewards")),
                       sample_mask = golden::tensor(inputs.at("sample_mask"));
  const auto columns = static_cast<size_t>(mask.shape[1]);
  double sum = 0;
  for (size_t row = 0; row < rewards.data.size(); ++row)
    for (size_t t = 1; t < columns && rewards.data[row] > 0; ++t)
      sum += mask.data[row * columns + t] * sample_mask.data[row];
  return static_cast<float>(sum);
}

// Packs rows of `lengths` tokens from row `begin` on: every [B, S] and [B] input, and `next_token` arrays [B, S - 1].
// A batch without rewards is one whose rewards are 0.
inline Packed pack(const Json& inputs, const std::map<std::string, golden::Tensor>& next_token, int64_t begin,
                   const std::vector<int64_t>& lengths) {
  Packed batch;
  for (const int64_t length : lengths) batch.cu_seqlens.push_back(batch.cu_seqlens.back() + length);
  for (const auto& [name, value] : inputs.items()) {
    if (!value.is_object() || value.at("dtype") != "f32") continue;
    const golden::Tensor tensor = golden::tensor(value);
    const bool per_token = tensor.shape.size() == 2 && name != "next_token_logprobs";
    if (per_token) batch.tokens[name] = pack_rows(tensor, begin, lengths, false);
    if (tensor.shape.size() == 1) {
      const auto first = tensor.data.begin() + begin;
      batch.samples[name].assign(first, first + static_cast<int64_t>(lengths.size()));
    }
  }
  for (const auto& [name, tensor] : next_token) batch.tokens[name] = pack_rows(tensor, begin, lengths, true);
  batch.samples.try_emplace("rewards", lengths.size());
  batch.samples["global_positive_tokens"].assign(lengths.size(), positive_tokens(inputs));
  batch.global_valid_tokens = inputs.value("global_valid_toks", 0.0);
  batch.global_valid_sequences = inputs.value("global_valid_seqs", 0.0);
  return batch;
}

// All rows of a [B, S] batch as one padded micro-batch.
inline Packed pack_all(const Json& inputs, const std::map<std::string, golden::Tensor>& next_token, int64_t rows,
                       int64_t columns) {
  Packed batch = pack(inputs, next_token, 0, std::vector<int64_t>(static_cast<size_t>(rows), columns));
  batch.padded_length = columns;
  return batch;
}

struct Result {
  double loss = 0;
  std::map<std::string, double> metrics;
  hexad::plugin::MetricSum observed;                // the same, to be added up over micro-batches
  std::map<std::string, std::vector<float>> grads;  // by differentiable input, [T]
};

inline Result compute(LossPlugin& loss, Packed& batch) {
  std::vector<hexad_named_tensor> inputs, outputs;
  std::vector<DLTensor> tensors(64);  // addresses stay
  std::vector<DLTensor*> grads;
  size_t used = 0;
  int64_t num_tokens = batch.num_tokens(), num_sequences = batch.num_sequences();
  const auto tensor = [&](std::vector<float>& data, int64_t* size) {
    tensors[used] = {data.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, size, nullptr, 0};
    return &tensors[used++];
  };
  Result result;
  for (auto& [name, data] : batch.tokens) {
    const bool output = name.starts_with("logprobs") || name == "token_values";
    (output ? outputs : inputs).push_back({name.c_str(), tensor(data, &num_tokens), nullptr, HEXAD_AXIS_TOKEN, 0});
    if (!output) continue;
    result.grads[name].assign(data.size(), 7);  // the host zeroes it
    grads.push_back(tensor(result.grads[name], &num_tokens));
  }
  if (auto scores = batch.samples.find("sequence_scores"); scores != batch.samples.end()) {
    outputs.push_back({"sequence_scores", tensor(scores->second, &num_sequences), nullptr, HEXAD_AXIS_SAMPLE, 0});
    result.grads["sequence_scores"].assign(scores->second.size(), 7);
    grads.push_back(tensor(result.grads["sequence_scores"], &num_sequences));
  }
  if (!batch.unit_id.empty()) {
    tensors[used] = {batch.unit_id.data(), {kDLCPU, 0}, 1, HEXAD_DTYPE_I64, &num_sequences, nullptr, 0};
    inputs.push_back({"unit_id", &tensors[used++], nullptr, HEXAD_AXIS_SAMPLE, 0});
  }
  for (auto& [name, data] : batch.samples) {
    if (name == "sequence_scores") continue;
    inputs.push_back({name.c_str(), tensor(data, &num_sequences), nullptr, HEXAD_AXIS_SAMPLE, 0});
  }
  const hexad::plugin::LossShape shape{
      num_sequences,      num_tokens, batch.cu_seqlens.data(), batch.global_valid_tokens, batch.global_valid_sequences,
      batch.padded_length};
  const hexad::plugin::LossValue value = loss.compute({}, shape, inputs, outputs, grads);
  result.loss = value.loss;
  for (const auto& metric : value.metrics) {
    result.metrics[metric.name] = metric.value;
    result.observed.add(metric.name, metric.value, metric.weight, static_cast<hexad::plugin::ReduceAs>(metric.reduce));
  }
  return result;
}

// Each of these settings by itself, and every two of them together.
inline std::vector<Json> alone_and_in_pairs(const std::vector<Json>& settings) {
  std::vector<Json> result;
  for (size_t i = 0; i < settings.size(); ++i) {
    result.push_back(settings[i]);
    for (size_t j = i + 1; j < settings.size(); ++j) {
      result.push_back(settings[i]);
      result.back().update(settings[j]);
    }
  }
  return result;
}

// A gradient of packed whole rows [B * S] as [B, S - 1]; that of every first position is 0.
inline std::vector<double> next_token_grad(const std::vector<float>& grad, int64_t rows, int64_t columns) {
  std::vector<double> result;
  REQUIRE(static_cast<int64_t>(grad.size()) == rows * columns);
  for (int64_t b = 0; b < rows; ++b) {
    CHECK(grad[static_cast<size_t>(b * columns)] == 0);
    for (int64_t t = 1; t < columns; ++t) result.push_back(grad[static_cast<size_t>(b * columns + t)]);
  }
  return result;
}

constexpr double kRelative = 1e-4, kAbsolute = 2e-6;

// Compares the loss and every metric, by name both ways.
inline void check_value(const Result& got, const Json& expected) {
  golden::check_close({got.loss}, {golden::number(expected.at("loss"))}, kRelative, kAbsolute);
  const Json& metrics = expected.at("metrics");
  for (const auto& [name, value] : metrics.items()) {
    INFO("metric " << name);
    REQUIRE(got.metrics.count(name) == 1);
    golden::check_close({got.metrics.at(name)}, {golden::number(value)}, kRelative, kAbsolute);
  }
  for (const auto& [name, value] : got.metrics) CHECK_MESSAGE(metrics.contains(name), "unexpected metric " << name);
}

}  // namespace loss_case
