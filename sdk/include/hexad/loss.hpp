// A loss plugin as a C++ class:
//
//   struct MyLoss {
//     static constexpr hexad_tensor_spec inputs[] = {token_f32("logprobs", HEXAD_SPEC_DIFFERENTIABLE),
//                                                    token_f32("advantages")};
//     static constexpr hexad_metric_spec metrics[] = {metric("clip_frac", HEXAD_REDUCE_MEAN)};
//     MyLoss(const Call& call, const Config& config);
//     void compute(const Call& call, const LossBatch& batch, LossOut& out);
//   };
//   HEXAD_CPP_LOSS(MyLoss, "my_loss", "1.0.0", "Apache-2.0")
//
// Optional members:
//   static constexpr uint64_t caps                                   default: host memory
//   void plan(const Call&, hexad_loss_plan&)
//   void advantages(const Call&, const hexad_batch&, DLTensor& out)
//   void end_step(const Call&, const hexad_step_metrics&)
//   std::string save_state(const Call&), void load_state(const Call&, std::string_view)
#pragma once
#include <hexad/tensor.hpp>

#include <iterator>

namespace hexad::sdk {

constexpr hexad_tensor_spec token_f32(const char* name, uint32_t flags = 0) {
  return {name, HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, flags, 0};
}
constexpr hexad_tensor_spec sample_f32(const char* name, uint32_t flags = 0) {
  return {name, HEXAD_DTYPE_F32, HEXAD_AXIS_SAMPLE, flags, 0};
}
constexpr hexad_metric_spec metric(const char* name, int32_t reduce) { return {name, reduce, 0}; }

// Inputs by their index in T::inputs.
class LossBatch {
 public:
  explicit LossBatch(const hexad_loss_batch* batch) : batch_(batch) {}
  const hexad_loss_batch& raw() const { return *batch_; }

  int64_t num_sequences() const { return batch_->num_sequences; }
  int64_t num_tokens() const { return batch_->num_tokens; }
  std::span<const int64_t> cu_seqlens() const {
    return {batch_->cu_seqlens, static_cast<size_t>(batch_->num_sequences) + 1};
  }
  double global_valid_tokens() const { return batch_->global_valid_tokens; }
  double global_valid_sequences() const { return batch_->global_valid_sequences; }

  // True if the backend ran the sequences as rows of one padded [B, S] batch.
  bool padded() const { return HEXAD_HAS(batch_, padded_length) && batch_->padded_length > 0; }

  bool has(size_t input) const { return batch_->inputs[input].tensor != nullptr; }
  const DLTensor* tensor(size_t input) const { return batch_->inputs[input].tensor; }
  // Empty if the batch does not have it.
  std::span<const float> f32(size_t input) const { return view<const float>(tensor(input)); }
  // What `input` is where the loss lets no gradient through; `held` is the index of its "held_" input (rule T6).
  std::span<const float> held(size_t held, size_t input) const { return f32(has(held) ? held : input); }

 private:
  const hexad_loss_batch* batch_;
};

// Outputs; all start as zero. Gradients are counted over the differentiable inputs only.
class LossOut {
 public:
  explicit LossOut(hexad_loss_out* out) : out_(out) {}
  hexad_loss_out& raw() { return *out_; }

  double& loss() { return *HEXAD_F64(out_->loss); }
  // Empty if the input was absent.
  std::span<float> grad(size_t index) { return view<float>(out_->grads[index]); }
  void set_metric(size_t index, double value, double weight = 1) {
    double* entry = HEXAD_F64(out_->metrics) + 2 * index;
    entry[0] = value;
    entry[1] = weight;
  }

 private:
  hexad_loss_out* out_;
};

template <typename T>
class LossThunks {
  static constexpr bool kHasMetrics = requires { T::metrics; };
  static constexpr bool kHasCaps = requires { T::caps; };
  static constexpr bool kHasPlan = requires { &T::plan; };
  static constexpr bool kHasAdvantages = requires { &T::advantages; };
  static constexpr bool kHasEndStep = requires { &T::end_step; };
  static constexpr bool kHasState = requires { &T::save_state; };
  static_assert(
      kHasState == requires { &T::load_state; }, "save_state and load_state go together");

  static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
    return on_box<T>(self, call, [&](T& object, const Call& service) {
      LossOut outputs(out);
      object.compute(service, LossBatch(batch), outputs);
    });
  }
  static hexad_code plan(hexad_loss* self, hexad_call* call, hexad_loss_plan* plan) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.plan(service, *plan); });
  }
  static hexad_code advantages(hexad_loss* self, hexad_call* call, const hexad_batch* rollout, DLTensor* out) {
    return on_box<T>(self, call,
                     [&](auto& object, const Call& service) { object.advantages(service, *rollout, *out); });
  }
  static hexad_code end_step(hexad_loss* self, hexad_call* call, const hexad_step_metrics* metrics) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.end_step(service, *metrics); });
  }
  static hexad_code state_save(hexad_loss* self, hexad_call* call, hexad_sink sink, void* ctx) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) {
      const std::string state = object.save_state(service);
      service.check(sink(ctx, state.data(), state.size()));
    });
  }
  static hexad_code state_load(hexad_loss* self, hexad_call* call, const void* bytes, uint64_t size) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) {
      object.load_state(service, std::string_view(static_cast<const char*>(bytes), size));
    });
  }

  static constexpr hexad_loss_vtable make() {
    hexad_loss_vtable table{};
    table.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load);
    table.num_inputs = static_cast<uint32_t>(std::size(T::inputs));
    table.caps = HEXAD_CAP_HOST_MEM;
    if constexpr (kHasCaps) table.caps = T::caps;
    table.inputs = std::data(T::inputs);
    if constexpr (kHasMetrics) table.num_metrics = static_cast<uint32_t>(std::size(T::metrics));
    if constexpr (kHasMetrics) table.metrics = std::data(T::metrics);
    table.create = create_box<T, hexad_loss>;
    table.destroy = destroy_box<T, hexad_loss>;
    table.compute = compute;
    if constexpr (kHasPlan) table.plan = plan;
    if constexpr (kHasAdvantages) table.advantages = advantages;
    if constexpr (kHasEndStep) table.end_step = end_step;
    if constexpr (kHasState) table.state_save = state_save;
    if constexpr (kHasState) table.state_load = state_load;
    return table;
  }

 public:
  static constexpr hexad_loss_vtable table = make();
};

}  // namespace hexad::sdk

// At namespace scope outside of any namespace, once per shared object.
#define HEXAD_CPP_LOSS(type, name, version, license) \
  HEXAD_LOSS_PLUGIN(name, version, license, (::hexad::sdk::LossThunks<type>::table))
