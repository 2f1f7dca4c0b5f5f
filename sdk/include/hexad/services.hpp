// Header-only C++20 over abi.h: errors, the guard that keeps exceptions inside the plugin, and the host's services.
// Everything here is compiled into the plugin; nothing of it crosses the ABI.
#pragma once
#include <hexad/abi.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace hexad::sdk {

// What libstdc++ unwinds a cancelled thread with: it has to pass every catch. libc++ has no name for it.
#ifdef __GLIBCXX__
using ThreadCancelled = abi::__forced_unwind;
#else
class ThreadCancelled {};  // never thrown
#endif

// Thrown by plugin code and by the wrappers; the guard turns it into its code and text.
class Error : public std::runtime_error {
 public:
  Error(hexad_code code, const std::string& text) : std::runtime_error(text), code_(code) {}
  hexad_code code() const { return code_; }

 private:
  hexad_code code_;
};

// A host service failed and has recorded the text already.
class Reported : public Error {
 public:
  explicit Reported(hexad_code code) : Error(code, "a host service failed") {}
};

// fail(HEXAD_INVALID_ARGUMENT, "ratio_clip_c must exceed 1, got %g", value): formats as printf does, at most 1 KiB, and
// throws.
[[noreturn, gnu::format(printf, 2, 3)]] inline void fail(hexad_code code, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw Error(code, text);
}

// The text of an exception, and behind colons of those that are nested in it (std::throw_with_nested).
inline std::string nested_text(const std::exception& error) {
  const char* const own = error.what();
  std::string text = own && *own ? own : "an exception without a text";
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) {
    text += ": " + nested_text(inner);
  } catch (...) {  // has no text
  }
  return text;
}

// Runs `function` and returns HEXAD_OK, or what it threw as a code whose text is in the call. Thread cancellation
// passes.
template <typename Function>
hexad_code guard(const hexad_host* host, hexad_call* call, Function&& function) {
  try {
    std::forward<Function>(function)();
    return HEXAD_OK;
  } catch (const Reported& error) {
    return error.code();
  } catch (const Error& error) {
    return host->set_error(call, error.code(), error.what(), UINT64_MAX);
  } catch (const std::bad_alloc&) {
    return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "out of host memory", UINT64_MAX);
  } catch (const std::exception& error) {
    return host->set_error(call, HEXAD_INTERNAL, nested_text(error).c_str(), UINT64_MAX);
  } catch (const std::string& text) {
    return host->set_error(call, HEXAD_INTERNAL, text.c_str(), UINT64_MAX);
  } catch (const char* text) {
    return host->set_error(call, HEXAD_INTERNAL, text, UINT64_MAX);
  } catch (ThreadCancelled&) {
    throw;
  } catch (...) {
    return host->set_error(call, HEXAD_INTERNAL, "an exception that is no std::exception", UINT64_MAX);
  }
}

// The host's services during one call. Copy freely; valid until the vtable function returns.
class Call {
 public:
  Call(const hexad_host* host, hexad_call* call) : host_(host), call_(call) {}
  const hexad_host* host() const { return host_; }
  hexad_call* raw() const { return call_; }

  // Throws if a host service failed.
  void check(hexad_code code) const {
    if (code != HEXAD_OK) throw Reported(code);
  }

  void log(int32_t level, std::string_view text) const {
    if (host_->log_enabled(level)) host_->log(call_, level, text.data(), text.size());
  }
  void metric(const char* name, double value, double weight, int32_t reduce) const {
    check(host_->metric(call_, name, value, weight, reduce));
  }

  // Tells the host that work goes on which has nothing to show yet (rule G1): a metric without a name.
  void alive() const { metric("", 0, 0, HEXAD_REDUCE_SUM); }

  DLDevice device() const {
    int32_t type = kDLCPU, id = 0;
    check(host_->device(call_, &type, &id));
    return {static_cast<DLDeviceType>(type), id};
  }
  // A cudaStream_t; null on the CPU.
  void* stream(DLDevice device) const { return host_->stream(call_, device.device_type, device.device_id); }
  bool cancelled() const { return host_->cancelled(call_) != 0; }
  int64_t deadline_ns() const { return host_->deadline_ns(call_); }
  int64_t step() const { return host_->step(call_); }
  bool deterministic() const { return (host_->flags(call_) & HEXAD_CALL_DETERMINISTIC) != 0; }

  // The group of an axis, or null if it has one rank.
  hexad_comm* comm(const char* axis) const {
    hexad_comm* comm = nullptr;
    check(host_->comm_axis(call_, axis, &comm));
    return comm;
  }

  // The text of token ids, special tokens kept.
  std::string detokenize(const int32_t* ids, int64_t count) const {
    std::string text(static_cast<size_t>(count) * 8 + 16, '\0');
    for (;;) {
      uint64_t size = text.size();
      check(host_->detokenize(call_, ids, count, text.data(), &size));
      const bool fits = size <= text.size();
      text.resize(size);
      if (fits) return text;
    }
  }

 private:
  const hexad_host* host_;
  hexad_call* call_;
};

// A range in the trace, for a scope.
class Range {
 public:
  Range(const Call& call, const char* name) : call_(call) { call_.host()->range_push(call_.raw(), name); }
  ~Range() { call_.host()->range_pop(call_.raw()); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Call call_;
};

// The plugin's section of the configuration. Readable in create and, with any call, until the instance is destroyed.
class Config {
 public:
  Config(Call call, const hexad_config* config) : call_(call), config_(config) {}
  const hexad_config* raw() const { return config_; }
  // The same section under another call.
  Config with(Call call) const { return Config(call, config_); }

  // The value at a dotted path, or `otherwise` if it is absent or null. T: int64_t (or int), double, bool, std::string.
  template <typename T>
  T get(const char* path, T otherwise) const {
    const hexad_host* host = call_.host();
    if constexpr (std::is_same_v<T, bool>) {
      int32_t value = otherwise;
      call_.check(host->config_bool(call_.raw(), config_, path, &value));
      return value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      int64_t value = otherwise;
      call_.check(host->config_i64(call_.raw(), config_, path, &value));
      if (static_cast<int64_t>(static_cast<T>(value)) != value)
        fail(HEXAD_INVALID_ARGUMENT, "%s is out of range", path);
      return static_cast<T>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      double value = otherwise;
      call_.check(host->config_f64(call_.raw(), config_, path, &value));
      return static_cast<T>(value);
    } else {
      static_assert(std::is_same_v<T, std::string>, "a configuration value is int64_t, double, bool or std::string");
      const char* value = otherwise.c_str();  // the host sees every default
      call_.check(host->config_str(call_.raw(), config_, path, &value));
      return value && value != otherwise.c_str() ? std::string(value) : std::move(otherwise);
    }
  }
  std::string get(const char* path, const char* otherwise) const { return get<std::string>(path, otherwise); }

  // The value, or nothing if it is absent or null.
  template <typename T>
  std::optional<T> find(const char* path) const {
    if constexpr (std::is_same_v<T, std::string>) {
      const char* value = nullptr;
      call_.check(call_.host()->config_str(call_.raw(), config_, path, &value));
      return value ? std::optional<T>(value) : std::nullopt;
    } else {
      // A value that two different defaults leave alone is there.
      const T first = get<T>(path, T(0)), second = get<T>(path, T(1));
      return first == second || first != first ? std::optional<T>(first) : std::nullopt;
    }
  }

  // For a key whose null means something of its own: nothing where null is written, `otherwise` where the key is
  // absent.
  template <typename T>
  std::optional<T> get_nullable(const char* path, T otherwise) const {
    const std::optional<std::string> text = json(path);
    if (text && *text == "null") return std::nullopt;
    return get<T>(path, std::move(otherwise));
  }

  // The subtree as JSON text; nothing if absent, "null" where null is written. The whole section: "".
  std::optional<std::string> json(const char* path) const {
    const char* text = nullptr;
    call_.check(call_.host()->config_json(call_.raw(), config_, path, &text));
    return text ? std::optional<std::string>(text) : std::nullopt;
  }

 private:
  Call call_;
  const hexad_config* config_;
};

// What an opaque handle of the ABI points to: the host table beside the plugin's own object.
template <typename T>
struct Box {
  Box(const hexad_host* host_table, const Call& call, const Config& config) : host(host_table), object(call, config) {}
  const hexad_host* host;
  T object;
};

// create and destroy for a class with the constructor T(const Call&, const Config&).
template <typename T, typename Handle>
hexad_code create_box(const hexad_host* host, hexad_call* call, const hexad_config* config, Handle** out) {
  return guard(host, call, [&] {
    const Call service(host, call);
    *out = reinterpret_cast<Handle*>(new Box<T>(host, service, Config(service, config)));
  });
}

template <typename T, typename Handle>
void destroy_box(Handle* self) {
  try {
    delete reinterpret_cast<Box<T>*>(self);
  } catch (ThreadCancelled&) {
    throw;
  } catch (...) {  // cleanup has nowhere to report to
  }
}

// Runs function(object, call) of an instance under the guard.
template <typename T, typename Handle, typename Function>
hexad_code on_box(Handle* self, hexad_call* call, Function&& function) {
  auto* box = reinterpret_cast<Box<T>*>(self);
  return guard(box->host, call, [&] { function(box->object, Call(box->host, call)); });
}

}  // namespace hexad::sdk
