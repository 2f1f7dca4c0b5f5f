#include "sdk/verify/case/loss_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>

#include <hexad/names.hpp>

#include "sdk/verify/cuda/device.hpp"
#include "sdk/verify/guarded.hpp"

namespace hexad::verify {
namespace {

bool contains(const char* name, std::string_view part) {
  return std::string_view(name).find(part) != std::string_view::npos;
}

// A possible value of an input. `base` is the log-prob of this token, which all policies give it about.
double draw(const hexad_tensor_spec& spec, double base, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const double noise = normal(random);
  const std::string_view name = spec.name;
  if (is_mask(spec)) return noise > -0.85 ? 1 : 0;
  if (name.starts_with("global_")) return 37;  // a count of the whole global batch: the same in every row
  if (name == "logprobs") return base;
  if (name == "generation_logprobs") return base - std::abs(0.05 * noise);
  if (contains(spec.name, "logprobs")) return base + 0.1 * noise;
  if (name == "entropy") return std::abs(noise);
  if (spec.dtype.code == kDLInt || spec.dtype.code == kDLUInt) return std::floor(std::abs(noise) * 5);
  return noise;
}

bool is_unit(const hexad_tensor_spec& spec) { return std::string_view(spec.name) == "unit_id"; }

bool wants_pairs(const hexad_loss_vtable& vtable) {
  return std::any_of(vtable.inputs, vtable.inputs + vtable.num_inputs, is_unit);
}

LossSequence make_sequence(const hexad_loss_vtable& vtable, int64_t length, uint64_t seed, size_t unit) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> base(static_cast<size_t>(length));
  for (double& value : base) value = -0.05 - std::abs(normal(random));
  LossSequence sequence{length, {}};
  for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
    const hexad_tensor_spec& spec = vtable.inputs[i];
    const bool token = spec.axis == HEXAD_AXIS_TOKEN;
    std::vector<double>& values = sequence.values.emplace_back(token ? length : 1);
    for (size_t t = 0; t < values.size(); ++t) values[t] = draw(spec, token ? base[t] : -1, random);
    if (is_unit(spec)) values[0] = static_cast<double>(unit);
    const bool starts_with_zero = token && (is_mask(spec) || contains(spec.name, "logprobs"));
    if (starts_with_zero && length > 0) values[0] = 0;
  }
  for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
    for (uint32_t j = 0; j < vtable.num_inputs; ++j) {
      const bool holds =
          is_held(vtable.inputs[i]) && sdk::held_tensor(vtable.inputs[i].name)->name == vtable.inputs[j].name;
      if (holds) sequence.values[i] = sequence.values[j];
    }
  }
  return sequence;
}

// What the engine counts: tokens and sequences that no mask takes away.
void count_valid(const hexad_loss_vtable& vtable, LossCase& batch) {
  for (const LossSequence& sequence : batch.sequences) {
    std::vector<double> weight(static_cast<size_t>(sequence.length), 1);
    if (!weight.empty()) weight[0] = 0;
    double row = 1;
    for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
      if (!is_mask(vtable.inputs[i])) continue;
      const std::vector<double>& mask = sequence.values[i];
      if (vtable.inputs[i].axis == HEXAD_AXIS_TOKEN) {
        for (size_t t = 0; t < mask.size(); ++t) weight[t] *= mask[t];
      } else {
        row *= mask[0];
      }
    }
    for (double token : weight) batch.valid_tokens += token * row;
    batch.valid_sequences += row;
  }
  batch.valid_tokens = std::max(batch.valid_tokens, 1.0);
  batch.valid_sequences = std::max(batch.valid_sequences, 1.0);
}

template <typename T>
void store(GuardedTensor& tensor, size_t index, double value) {
  tensor.data<T>()[index] = static_cast<T>(value);
}

void store_as(GuardedTensor& tensor, DLDataType dtype, size_t index, double value) {
  if (dtype.code == kDLFloat && dtype.bits == 64) return store<double>(tensor, index, value);
  if (dtype.code == kDLFloat) return store<float>(tensor, index, value);
  if (dtype.bits == 64) return store<int64_t>(tensor, index, value);
  if (dtype.bits == 32) return store<int32_t>(tensor, index, value);
  store<uint8_t>(tensor, index, value);
}

}  // namespace

bool is_mask(const hexad_tensor_spec& spec) { return std::string_view(spec.name).ends_with("mask"); }

bool is_held(const hexad_tensor_spec& spec) { return sdk::held_tensor(spec.name) != nullptr; }

int64_t LossCase::num_tokens() const {
  int64_t tokens = 0;
  for (const LossSequence& sequence : sequences) tokens += sequence.length;
  return tokens;
}

LossCase LossCase::part(const std::vector<size_t>& order) const {
  LossCase result{{}, valid_tokens, valid_sequences, rows_per_unit};
  for (size_t unit : order) {
    for (size_t row = 0; row < rows_per_unit; ++row) result.sequences.push_back(sequences[unit * rows_per_unit + row]);
  }
  return result;
}

LossCase make_case(const hexad_loss_vtable& vtable, const std::vector<int64_t>& lengths, uint64_t seed) {
  LossCase batch;
  batch.rows_per_unit = wants_pairs(vtable) ? 2 : 1;
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (size_t row = 0; row < batch.rows_per_unit; ++row)
      batch.sequences.push_back(make_sequence(vtable, lengths[i], seed * 1'000'003 + i + 1'000'000 * row, i));
  }
  count_valid(vtable, batch);
  return batch;
}

std::string LossResult::bits() const {
  const auto bytes = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  std::string text(reinterpret_cast<const char*>(&loss), sizeof loss);
  for (const auto& grad : grads) text += bytes(grad);
  return text + bytes(metrics);
}

LossUse plan_of(const Subject& subject, void* instance, std::string* error) {
  const hexad_loss_vtable* vtable = subject.desc->loss;
  if (!HEXAD_HAS(vtable, plan) || !vtable->plan) return {};
  hexad_loss_plan plan{};
  plan.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_plan, used_metrics);
  plan.used_inputs = plan.used_metrics = ~uint64_t{0};
  const auto call = subject.engine->call();
  if (vtable->plan(static_cast<hexad_loss*>(instance), call->handle(), &plan) != HEXAD_OK && error)
    *error = call->text();
  return {.inputs = plan.used_inputs};
}

// The tensors of one compute call.
struct LossCall::Arrays {
  Arrays(const hexad_loss_vtable& vtable, MemorySpace* space)
      : loss(DLDataType HEXAD_DTYPE_F64, {1}, space),
        metrics(DLDataType HEXAD_DTYPE_F64, {vtable.num_metrics, 2}, space) {}

  std::vector<int64_t> cu_seqlens = {0};
  std::vector<std::unique_ptr<GuardedTensor>> inputs, grads;  // null: absent
  std::vector<std::string> originals;                         // bytes of the inputs
  std::vector<hexad_named_tensor> named;
  std::vector<DLTensor*> grad_tensors;
  GuardedTensor loss, metrics;
  double valid_tokens = 0, valid_sequences = 0;
};

LossCall::LossCall(const Subject& subject, const LossCase& batch, const LossUse& use, bool grown)
    : subject_(subject), grown_(grown), arrays_(std::make_unique<Arrays>(*subject.desc->loss, subject.cuda)) {
  const hexad_loss_vtable& vtable = *subject.desc->loss;
  Arrays& arrays = *arrays_;
  arrays.valid_tokens = batch.valid_tokens;
  arrays.valid_sequences = batch.valid_sequences;
  for (const LossSequence& sequence : batch.sequences)
    arrays.cu_seqlens.push_back(arrays.cu_seqlens.back() + sequence.length);
  for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
    const hexad_tensor_spec& spec = vtable.inputs[i];
    const bool token = spec.axis == HEXAD_AXIS_TOKEN, optional = spec.flags & HEXAD_SPEC_OPTIONAL;
    const bool given = (use.inputs >> i & 1) && (is_held(spec) ? use.held : use.optional || !optional);
    const int64_t rows = token ? arrays.cu_seqlens.back() : static_cast<int64_t>(batch.sequences.size());
    const auto make = [&](DLDataType dtype) {
      return given ? std::make_unique<GuardedTensor>(dtype, std::vector<int64_t>{rows}, subject.cuda) : nullptr;
    };
    auto& tensor = arrays.inputs.emplace_back(make(spec.dtype));
    size_t index = 0;
    for (const LossSequence& sequence : batch.sequences) {
      if (!tensor) break;
      for (double value : sequence.values[i]) store_as(*tensor, spec.dtype, index++, value);
    }
    arrays.originals.emplace_back(tensor ? std::string(tensor->data<char>(), tensor->memory().size()) : "");
    arrays.named.push_back({spec.name, tensor ? tensor->tensor() : nullptr, nullptr, spec.axis, 0});
    if (!(spec.flags & HEXAD_SPEC_DIFFERENTIABLE)) continue;
    auto& grad = arrays.grads.emplace_back(make(DLDataType HEXAD_DTYPE_F32));
    arrays.grad_tensors.push_back(grad ? grad->tensor() : nullptr);
  }
}

LossCall::~LossCall() = default;

std::vector<GuardedTensor*> LossCall::tensors() const {
  std::vector<GuardedTensor*> all;
  for (const auto* list : {&arrays_->inputs, &arrays_->grads}) {
    for (const auto& tensor : *list) {
      if (tensor) all.push_back(tensor.get());
    }
  }
  all.push_back(&arrays_->loss);
  all.push_back(&arrays_->metrics);
  return all;
}

void LossCall::upload() {
  for (GuardedTensor* tensor : tensors()) tensor->memory().upload();
}

LossResult LossCall::run(void* instance, const CallOptions& options) {
  Arrays& arrays = *arrays_;
  Grown<hexad_loss_batch> in(
      {HEXAD_STRUCT_SIZE(hexad_loss_batch, padded_length), 0, static_cast<int64_t>(arrays.cu_seqlens.size()) - 1,
       arrays.cu_seqlens.back(), arrays.cu_seqlens.data(), arrays.valid_tokens, arrays.valid_sequences,
       arrays.named.data(), static_cast<int64_t>(arrays.named.size()), 0},
      grown_);
  Grown<hexad_loss_out> out(
      {HEXAD_STRUCT_SIZE(hexad_loss_out, metrics), 0, arrays.loss.tensor(), arrays.grad_tensors.data(),
       static_cast<int64_t>(arrays.grad_tensors.size()), arrays.metrics.tensor()},
      grown_);
  const auto call = subject_.engine->call(options);
  LossResult result;
  result.code = subject_.desc->loss->compute(static_cast<hexad_loss*>(instance), call->handle(), in.get(), out.get());
  result.text = call->text();
  return result;
}

void LossCall::fetch(LossResult& result) {
  for (GuardedTensor* tensor : tensors()) tensor->memory().download();
  result.loss = *arrays_->loss.data<double>();
  result.grads.clear();
  for (const auto& grad : arrays_->grads) {
    const float* values = grad ? grad->data<float>() : nullptr;
    result.grads.emplace_back(values, values + (grad ? grad->memory().size() / sizeof(float) : 0));
  }
  const double* metrics = arrays_->metrics.data<double>();
  result.metrics.assign(metrics, metrics + 2 * subject_.desc->loss->num_metrics);
  result.damage = damage();
}

std::string LossCall::damage() const {
  const hexad_loss_vtable& vtable = *subject_.desc->loss;
  for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
    GuardedTensor* input = arrays_->inputs[i].get();
    if (!input) continue;
    if (!input->memory().intact()) return std::string("bytes beside input '") + vtable.inputs[i].name + "'";
    if (std::memcmp(input->data<char>(), arrays_->originals[i].data(), arrays_->originals[i].size()) != 0) {
      return std::string("input '") + vtable.inputs[i].name + "', which is borrowed";
    }
  }
  for (const auto& grad : arrays_->grads) {
    if (grad && !grad->memory().intact()) return "bytes beside a gradient";
  }
  if (!arrays_->loss.memory().intact()) return "bytes beside the loss";
  if (!arrays_->metrics.memory().intact()) return "bytes beside the metrics";
  return "";
}

LossResult compute(const Subject& subject, void* instance, const LossCase& batch, const LossUse& use,
                   const CallOptions& options, bool grown) {
  LossCall call(subject, batch, use, grown);
  call.upload();
  LossResult result = call.run(instance, options);
  call.fetch(result);
  return result;
}

}  // namespace hexad::verify
