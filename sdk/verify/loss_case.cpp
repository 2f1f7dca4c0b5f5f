#include "sdk/verify/loss_case.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>

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
  if (name == "logprobs") return base;
  if (name == "generation_logprobs") return base - std::abs(0.05 * noise);
  if (contains(spec.name, "logprobs")) return base + 0.1 * noise;
  if (name == "entropy") return std::abs(noise);
  if (spec.dtype.code == kDLInt || spec.dtype.code == kDLUInt) return std::floor(std::abs(noise) * 5);
  return noise;
}

LossSequence make_sequence(const hexad_loss_vtable& vtable, int64_t length, uint64_t seed) {
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
    const bool starts_with_zero = token && (is_mask(spec) || contains(spec.name, "logprobs"));
    if (starts_with_zero && length > 0) values[0] = 0;
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

// A struct of today in the memory of a longer one, with poison behind it.
template <typename T>
class Grown {
 public:
  Grown(const T& value, bool grown) : memory_(sizeof(T) + 256, 0xA5) {
    std::memcpy(memory_.data(), &value, sizeof(T));
    if (grown) get()->struct_size += 256;
  }
  T* get() { return reinterpret_cast<T*>(memory_.data()); }

 private:
  std::vector<unsigned char> memory_;
};

// The arrays of one compute call.
struct Arrays {
  std::vector<int64_t> cu_seqlens = {0};
  std::vector<std::unique_ptr<GuardedTensor>> inputs, grads;  // null: absent
  std::vector<std::string> originals;                         // bytes of the inputs
  std::vector<hexad_named_tensor> named;
  std::vector<DLTensor*> grad_tensors;
};

Arrays lay_out(const hexad_loss_vtable& vtable, const LossCase& batch, const LossUse& use) {
  Arrays arrays;
  for (const LossSequence& sequence : batch.sequences)
    arrays.cu_seqlens.push_back(arrays.cu_seqlens.back() + sequence.length);
  for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
    const hexad_tensor_spec& spec = vtable.inputs[i];
    const bool token = spec.axis == HEXAD_AXIS_TOKEN, optional = spec.flags & HEXAD_SPEC_OPTIONAL;
    const bool given = (use.inputs >> i & 1) && (use.optional || !optional);
    const int64_t rows = token ? arrays.cu_seqlens.back() : static_cast<int64_t>(batch.sequences.size());
    auto& tensor = arrays.inputs.emplace_back(
        given ? std::make_unique<GuardedTensor>(spec.dtype, std::vector<int64_t>{rows}) : nullptr);
    size_t index = 0;
    if (tensor) {
      for (const LossSequence& sequence : batch.sequences) {
        for (double value : sequence.values[i]) store_as(*tensor, spec.dtype, index++, value);
      }
    }
    arrays.originals.emplace_back(tensor ? std::string(tensor->data<char>(), tensor->memory().size()) : "");
    arrays.named.push_back({spec.name, tensor ? tensor->tensor() : nullptr, nullptr, spec.axis, 0});
    if (!(spec.flags & HEXAD_SPEC_DIFFERENTIABLE)) continue;
    auto& grad = arrays.grads.emplace_back(
        tensor ? std::make_unique<GuardedTensor>(DLDataType HEXAD_DTYPE_F32, std::vector<int64_t>{rows}) : nullptr);
    arrays.grad_tensors.push_back(grad ? grad->tensor() : nullptr);
  }
  return arrays;
}

std::string damage_of(const hexad_loss_vtable& vtable, Arrays& arrays, const GuardedTensor& loss,
                      const GuardedTensor& metrics) {
  for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
    GuardedTensor* input = arrays.inputs[i].get();
    if (!input) continue;
    if (!input->memory().intact()) return std::string("bytes beside input '") + vtable.inputs[i].name + "'";
    if (std::memcmp(input->data<char>(), arrays.originals[i].data(), arrays.originals[i].size()) != 0) {
      return std::string("input '") + vtable.inputs[i].name + "', which is borrowed";
    }
  }
  for (const auto& grad : arrays.grads) {
    if (grad && !grad->memory().intact()) return "bytes beside a gradient";
  }
  if (!loss.memory().intact()) return "bytes beside the loss";
  if (!metrics.memory().intact()) return "bytes beside the metrics";
  return "";
}

}  // namespace

bool is_mask(const hexad_tensor_spec& spec) { return std::string_view(spec.name).ends_with("mask"); }

int64_t LossCase::num_tokens() const {
  int64_t tokens = 0;
  for (const LossSequence& sequence : sequences) tokens += sequence.length;
  return tokens;
}

LossCase LossCase::part(const std::vector<size_t>& order) const {
  LossCase result{{}, valid_tokens, valid_sequences};
  for (size_t index : order) result.sequences.push_back(sequences[index]);
  return result;
}

LossCase make_case(const hexad_loss_vtable& vtable, const std::vector<int64_t>& lengths, uint64_t seed) {
  LossCase batch;
  for (size_t i = 0; i < lengths.size(); ++i)
    batch.sequences.push_back(make_sequence(vtable, lengths[i], seed * 1'000'003 + i));
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
  return {plan.used_inputs, true};
}

LossResult compute(const Subject& subject, void* instance, const LossCase& batch, const LossUse& use,
                   const CallOptions& options, bool grown) {
  const hexad_loss_vtable& vtable = *subject.desc->loss;
  Arrays arrays = lay_out(vtable, batch, use);
  GuardedTensor loss(DLDataType HEXAD_DTYPE_F64, {1}), metrics(DLDataType HEXAD_DTYPE_F64, {vtable.num_metrics, 2});
  Grown<hexad_loss_batch> in(
      {HEXAD_STRUCT_SIZE(hexad_loss_batch, padded_length), 0, static_cast<int64_t>(batch.sequences.size()),
       arrays.cu_seqlens.back(), arrays.cu_seqlens.data(), batch.valid_tokens, batch.valid_sequences,
       arrays.named.data(), static_cast<int64_t>(arrays.named.size()), 0},
      grown);
  Grown<hexad_loss_out> out({HEXAD_STRUCT_SIZE(hexad_loss_out, metrics), 0, loss.tensor(), arrays.grad_tensors.data(),
                             static_cast<int64_t>(arrays.grad_tensors.size()), metrics.tensor()},
                            grown);
  const auto call = subject.engine->call(options);
  LossResult result;
  result.code = vtable.compute(static_cast<hexad_loss*>(instance), call->handle(), in.get(), out.get());
  result.text = call->text();
  result.loss = *loss.data<double>();
  for (const auto& grad : arrays.grads) {
    const float* values = grad ? grad->data<float>() : nullptr;
    result.grads.emplace_back(values, values + (grad ? grad->memory().size() / sizeof(float) : 0));
  }
  result.metrics.assign(metrics.data<double>(), metrics.data<double>() + 2 * vtable.num_metrics);
  result.damage = damage_of(vtable, arrays, loss, metrics);
  return result;
}

}  // namespace hexad::verify
