#include "sdk/verify/overlay_host.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

namespace hexad::verify {
namespace {

constexpr uint64_t kWhole = HEXAD_STRUCT_SIZE(hexad_host, extension);
constexpr uint64_t kGrowth = 512;        // bytes of functions that a later minor might add
constexpr unsigned char kPoison = 0xA5;  // as an address: not canonical, so a call through it faults

struct State {
  const hexad_host* real = nullptr;
  std::atomic<int64_t> fuse{0};
  std::atomic<const char*> tripped{nullptr};
  std::atomic<int64_t> live{0};
  std::mutex mutex;
  std::vector<std::pair<std::string, std::string>> keys;
  std::map<DLManagedTensorVersioned*, void (*)(DLManagedTensorVersioned*)> deleters;
};
State* state = nullptr;

// True if this call is the one that is to fail.
bool trips(const char* service) {
  if (state->fuse.load() <= 0 || state->fuse.fetch_sub(1) != 1) return false;
  state->tripped = service;
  return true;
}

hexad_code refuse(hexad_call* call, const char* service) {
  const std::string text = std::string("the conformance kit made ") + service + " fail";
  return state->real->set_error(call, HEXAD_RESOURCE_EXHAUSTED, text.data(), text.size());
}

void note_key(const char* path, const char* type) {
  const std::scoped_lock lock(state->mutex);
  for (const auto& known : state->keys) {
    if (known.first == path) return;
  }
  state->keys.emplace_back(path, type);
}

// A service that forwards to the real one unless it is to fail: wrapped<&hexad_host::barrier, Name>.
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&name)[N]) { std::copy_n(name, N, text); }
};

template <auto Member, Name name, typename Signature = decltype(Member)>
struct Wrapped;
template <auto Member, Name name, typename... Args>
struct Wrapped<Member, name, hexad_code (*hexad_host::*)(hexad_call*, Args...)> {
  static hexad_code call(hexad_call* call, Args... args) {
    if (trips(name.text)) return refuse(call, name.text);
    return (state->real->*Member)(call, args...);
  }
};

template <auto Member, Name name, Name type, typename Value>
hexad_code read_key(hexad_call* call, const hexad_config* config, const char* path, Value* inout) {
  note_key(path, type.text);
  return Wrapped<Member, name>::call(call, config, path, inout);
}

hexad_code alloc(hexad_call* call, int32_t device_type, int32_t device_id, uint64_t bytes, void** out) {
  const hexad_code code = Wrapped<&hexad_host::alloc, "alloc">::call(call, device_type, device_id, bytes, out);
  if (code == HEXAD_OK) ++state->live;
  return code;
}

void free_memory(void* pointer, int32_t device_type, int32_t device_id) {
  if (pointer) --state->live;
  state->real->free(pointer, device_type, device_id);
}

void delete_counted(DLManagedTensorVersioned* tensor) {
  void (*deleter)(DLManagedTensorVersioned*) = nullptr;
  {
    const std::scoped_lock lock(state->mutex);
    const auto found = state->deleters.find(tensor);
    deleter = found->second;
    state->deleters.erase(found);
  }
  --state->live;
  deleter(tensor);
}

hexad_code tensor_new(hexad_call* call, const DLTensor* prototype, DLManagedTensorVersioned** out) {
  DLManagedTensorVersioned* tensor = nullptr;
  const hexad_code code = Wrapped<&hexad_host::tensor_new, "tensor_new">::call(call, prototype, &tensor);
  if (code != HEXAD_OK) return code;
  ++state->live;
  const std::scoped_lock lock(state->mutex);
  state->deleters[tensor] = tensor->deleter;
  tensor->deleter = delete_counted;
  *out = tensor;
  return HEXAD_OK;
}

#define HEXAD_WRAP(service) host.service = Wrapped<&hexad_host::service, #service>::call

hexad_host instrumented(const hexad_host& real) {
  hexad_host host = real;
  HEXAD_WRAP(metric);
  host.config_i64 = read_key<&hexad_host::config_i64, "config_i64", "int", int64_t>;
  host.config_f64 = read_key<&hexad_host::config_f64, "config_f64", "number", double>;
  host.config_bool = read_key<&hexad_host::config_bool, "config_bool", "bool", int32_t>;
  host.config_str = read_key<&hexad_host::config_str, "config_str", "text", const char*>;
  HEXAD_WRAP(config_json);
  HEXAD_WRAP(device);
  host.alloc = alloc;
  host.free = free_memory;
  host.tensor_new = tensor_new;
  HEXAD_WRAP(comm_axis);
  HEXAD_WRAP(all_reduce);
  HEXAD_WRAP(all_gather);
  HEXAD_WRAP(reduce_scatter);
  HEXAD_WRAP(broadcast);
  HEXAD_WRAP(barrier);
  HEXAD_WRAP(comm_native);
  HEXAD_WRAP(comm_new);
  HEXAD_WRAP(kv_put);
  HEXAD_WRAP(kv_get);
  HEXAD_WRAP(detokenize);
  return host;
}

#undef HEXAD_WRAP

}  // namespace

OverlayHost::OverlayHost(const hexad_host* real, uint64_t size, bool grown) {
  state = new State;  // leaked, like the table: a plugin's deleters may run at any time
  state->real = real;
  const uint64_t seen = size ? size : kWhole;
  auto* memory = new unsigned char[kWhole + kGrowth];
  std::memset(memory, kPoison, kWhole + kGrowth);
  hexad_host host = instrumented(*real);
  host.struct_size = static_cast<uint32_t>(grown ? kWhole + kGrowth : seen);
  if (grown) host.abi_minor += 1;
  std::memcpy(memory, &host, seen);
  table_ = reinterpret_cast<const hexad_host*>(memory);
}

void OverlayHost::fail_at(int64_t n) {
  state->tripped = nullptr;
  state->fuse = n;
}
bool OverlayHost::tripped() const { return state->tripped != nullptr; }
std::string OverlayHost::tripped_service() const { return state->tripped ? state->tripped.load() : ""; }
int64_t OverlayHost::live() const { return state->live; }
std::vector<std::pair<std::string, std::string>> OverlayHost::keys() const {
  const std::scoped_lock lock(state->mutex);
  return state->keys;
}

}  // namespace hexad::verify
