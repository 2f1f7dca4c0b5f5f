// A generator plugin as a C++ class, with the members of hexad_generator_vtable under their names:
//
//   struct MyGenerator {
//     MyGenerator(const Call& call, const Config& config);
//     void describe(const Call&, hexad_generator_info&);
//     void submit(const Call&, std::span<const hexad_request* const>);
//     int64_t poll(const Call&, std::span<const hexad_completion*> events, int64_t timeout_ms);   // returns how many
//     void release(std::span<const hexad_completion* const>);
//     void cancel(const Call&, std::span<const uint64_t> ids);
//     void update_begin(const Call&, int64_t version);
//     void update_bucket(const Call&, const hexad_weight_list&);
//     void update_end(const Call&, bool commit);
//     // optional
//     void weight_layout(const Call&, hexad_weight_list&);   void pause(const Call&);   void resume(const Call&);
//     void sleep(const Call&, int32_t level);   void wake(const Call&);   void flush_cache(const Call&);
//   };
//   HEXAD_CPP_GENERATOR(MyGenerator, "my_generator", "1.0.0", "Apache-2.0")
//
// Threads, ownership and order of calls are those of abi.h: submit, poll, release and cancel come from several threads
// at once. Functions report failure by throwing.
#pragma once
#include <hexad/tensor.hpp>

namespace hexad::sdk {

template <typename T>
class GeneratorThunks {
  using Self = hexad_generator;

  static hexad_code describe(Self* self, hexad_call* call, hexad_generator_info* info) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.describe(service, *info); });
  }
  static hexad_code submit(Self* self, hexad_call* call, const hexad_request* const* requests, int64_t count) {
    return on_box<T>(self, call, [&](T& object, const Call& service) {
      object.submit(service, std::span<const hexad_request* const>(requests, static_cast<size_t>(count)));
    });
  }
  static hexad_code poll(Self* self, hexad_call* call, const hexad_completion** events, int64_t max_events,
                         int64_t timeout_ms, int64_t* count) {
    return on_box<T>(self, call, [&](T& object, const Call& service) {
      *count =
          object.poll(service, std::span<const hexad_completion*>(events, static_cast<size_t>(max_events)), timeout_ms);
    });
  }
  static void release(Self* self, const hexad_completion* const* events, int64_t count) {
    try {
      reinterpret_cast<Box<T>*>(self)->object.release({events, static_cast<size_t>(count)});
    } catch (ThreadCancelled&) {
      throw;
    } catch (...) {  // cleanup has nowhere to report to
    }
  }
  static hexad_code cancel(Self* self, hexad_call* call, const uint64_t* ids, int64_t count) {
    return on_box<T>(self, call, [&](T& object, const Call& service) {
      object.cancel(service, std::span<const uint64_t>(ids, static_cast<size_t>(count)));
    });
  }
  static hexad_code update_begin(Self* self, hexad_call* call, int64_t version) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.update_begin(service, version); });
  }
  static hexad_code update_bucket(Self* self, hexad_call* call, const hexad_weight_list* bucket) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.update_bucket(service, *bucket); });
  }
  static hexad_code update_end(Self* self, hexad_call* call, int32_t commit) {
    return on_box<T>(self, call, [&](T& object, const Call& service) { object.update_end(service, commit != 0); });
  }
  static hexad_code weight_layout(Self* self, hexad_call* call, hexad_weight_list* out) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.weight_layout(service, *out); });
  }
  static hexad_code pause(Self* self, hexad_call* call) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.pause(service); });
  }
  static hexad_code resume(Self* self, hexad_call* call) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.resume(service); });
  }
  static hexad_code sleep(Self* self, hexad_call* call, int32_t level) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.sleep(service, level); });
  }
  static hexad_code wake(Self* self, hexad_call* call) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.wake(service); });
  }
  static hexad_code flush_cache(Self* self, hexad_call* call) {
    return on_box<T>(self, call, [&](auto& object, const Call& service) { object.flush_cache(service); });
  }

  static constexpr hexad_generator_vtable make() {
    hexad_generator_vtable table{};
    table.struct_size = HEXAD_STRUCT_SIZE(hexad_generator_vtable, flush_cache);
    table.create = create_box<T, Self>;
    table.destroy = destroy_box<T, Self>;
    table.describe = describe;
    table.submit = submit;
    table.poll = poll;
    table.release = release;
    table.cancel = cancel;
    table.update_begin = update_begin;
    table.update_bucket = update_bucket;
    table.update_end = update_end;
    if constexpr (requires { &T::weight_layout; }) table.weight_layout = weight_layout;
    if constexpr (requires { &T::pause; }) table.pause = pause;
    if constexpr (requires { &T::resume; }) table.resume = resume;
    if constexpr (requires { &T::sleep; }) table.sleep = sleep;
    if constexpr (requires { &T::wake; }) table.wake = wake;
    if constexpr (requires { &T::flush_cache; }) table.flush_cache = flush_cache;
    return table;
  }

 public:
  static constexpr hexad_generator_vtable table = make();
};

}  // namespace hexad::sdk

// At namespace scope outside of any namespace, once per shared object.
#define HEXAD_CPP_GENERATOR(type, name, version, license) \
  HEXAD_GENERATOR_PLUGIN(name, version, license, (::hexad::sdk::GeneratorThunks<type>::table))
