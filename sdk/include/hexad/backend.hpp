// A backend plugin as a C++ class, with the members of hexad_backend_vtable under their names:
//
//   struct MyBackend {
//     MyBackend(const Call& call, const Config& config);
//     void describe(const Call&, hexad_backend_info&);
//     void forward(const Call&, const hexad_forward_args&);
//     void train(const Call&, const hexad_train_args&);
//     void step(const Call&, const hexad_step_args&, hexad_step_stats&);
//     void keep(const Call&, int32_t which);
//     void load(const Call&, const hexad_checkpoint_args&);
//     void save(const Call&, const hexad_checkpoint_args&);
//     void weight_layout(const Call&, hexad_weight_list&);
//     void weights_begin(const Call&, const hexad_weights_request&);
//     void weights_next(const Call&, hexad_weight_list&);   // count 0 at the end
//     void weights_end();
//     // optional
//     void offload(const Call&, uint64_t what);   void onload(const Call&, uint64_t what);
//     void memory(const Call&, hexad_memory_stats&);
//   };
//   HEXAD_CPP_BACKEND(MyBackend, "my_backend", "1.0.0", "Apache-2.0")
//
// Threads, ownership and order of calls are those of abi.h. Functions report failure by throwing.
#pragma once
#include <hexad/tensor.hpp>

namespace hexad::sdk {

// Runs the loss that the host gave to train; throws if it failed (the text is in the call already).
inline void compute_loss(const Call& call, const hexad_train_args& args, int64_t batch_index,
                         std::span<const hexad_named_tensor> outputs, std::span<DLTensor* const> grads) {
  call.check(args.loss->compute(args.loss->ctx, call.raw(), batch_index, outputs.data(), grads.data(),
                                static_cast<int64_t>(outputs.size())));
}

template <typename T>
class BackendThunks {
  using Self = hexad_backend;

  static hexad_code describe(Self* self, hexad_call* call, hexad_backend_info* info) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.describe(service, *info); });
  }
  static hexad_code forward(Self* self, hexad_call* call, const hexad_forward_args* args) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.forward(service, *args); });
  }
  static hexad_code train(Self* self, hexad_call* call, const hexad_train_args* args) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.train(service, *args); });
  }
  static hexad_code step(Self* self, hexad_call* call, const hexad_step_args* args, hexad_step_stats* stats) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.step(service, *args, *stats); });
  }
  static hexad_code keep(Self* self, hexad_call* call, int32_t which) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.keep(service, which); });
  }
  static hexad_code load(Self* self, hexad_call* call, const hexad_checkpoint_args* args) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.load(service, *args); });
  }
  static hexad_code save(Self* self, hexad_call* call, const hexad_checkpoint_args* args) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.save(service, *args); });
  }
  static hexad_code weight_layout(Self* self, hexad_call* call, hexad_weight_list* out) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.weight_layout(service, *out); });
  }
  static hexad_code weights_begin(Self* self, hexad_call* call, const hexad_weights_request* request) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.weights_begin(service, *request); });
  }
  static hexad_code weights_next(Self* self, hexad_call* call, hexad_weight_list* out) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.weights_next(service, *out); });
  }
  static void weights_end(Self* self) {
    try {
      reinterpret_cast<Box<T>*>(self)->object.weights_end();
    } catch (ThreadCancelled&) {
      throw;
    } catch (...) {  // cleanup has nowhere to report to
    }
  }
  static hexad_code offload(Self* self, hexad_call* call, uint64_t what) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.offload(service, what); });
  }
  static hexad_code onload(Self* self, hexad_call* call, uint64_t what) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.onload(service, what); });
  }
  static hexad_code memory(Self* self, hexad_call* call, hexad_memory_stats* out) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.memory(service, *out); });
  }

  static constexpr hexad_backend_vtable make() {
    hexad_backend_vtable table{};
    table.struct_size = HEXAD_STRUCT_SIZE(hexad_backend_vtable, memory);
    table.create = create_box<T, Self>;
    table.destroy = destroy_box<T, Self>;
    table.describe = describe;
    table.forward = forward;
    table.train = train;
    table.step = step;
    table.keep = keep;
    table.load = load;
    table.save = save;
    table.weight_layout = weight_layout;
    table.weights_begin = weights_begin;
    table.weights_next = weights_next;
    table.weights_end = weights_end;
    if constexpr (requires { &T::offload; }) table.offload = offload;
    if constexpr (requires { &T::onload; }) table.onload = onload;
    if constexpr (requires { &T::memory; }) table.memory = memory;
    return table;
  }

 public:
  static constexpr hexad_backend_vtable table = make();
};

}  // namespace hexad::sdk

// At namespace scope outside of any namespace, once per shared object.
#define HEXAD_CPP_BACKEND(type, name, version, license) \
  HEXAD_BACKEND_PLUGIN(name, version, license, (::hexad::sdk::BackendThunks<type>::table))
