// A host for one plugin: the services of abi.h over libhexad_runtime.so, a JSON document for the configuration, and a
// process group that a test may wrap.
#pragma once
#include <dlfcn.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/runtime/runtime_library.hpp"

struct hexad_call {
  std::string error;
};

struct hexad_config {
  nlohmann::json document;
  std::map<std::string, std::string> texts;  // what strings handed out point to
};

namespace backend_test {

using nlohmann::json;

inline std::vector<std::string>& logged() {
  static std::vector<std::string> lines;
  return lines;
}

// Metrics that the plugin reported, the last value of each.
inline std::map<std::string, double>& reported() {
  static std::map<std::string, double> values;
  return values;
}

// Replaces the c10d group that the plugin asks for.
inline std::function<void*(void*)>& wrap_group() {
  static std::function<void*(void*)> wrap;
  return wrap;
}

// The name under which the group that is being wrapped was made: an axis, or what the plugin called it.
inline std::string& group_name() {
  static std::string name;
  return name;
}

inline const json* find_any(const hexad_config* config, const char* path) {
  const json* node = &config->document;
  std::string rest = path;
  while (!rest.empty()) {
    const size_t dot = rest.find('.');
    const std::string key = rest.substr(0, dot);
    if (!node->is_object() || !node->contains(key)) return nullptr;
    node = &node->at(key);
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
  }
  return node;
}

// Null counts as absent.
inline const json* find(const hexad_config* config, const char* path) {
  const json* node = find_any(config, path);
  return node && !node->is_null() ? node : nullptr;
}

inline hexad_code set_error(hexad_call* call, hexad_code code, const char* text, uint64_t size) {
  if (call->error.empty()) call->error = size == UINT64_MAX ? std::string(text) : std::string(text, size);
  return code;
}

template <typename T>
hexad_code read(hexad_call* call, const hexad_config* config, const char* path, T* inout) {
  const json* node = find(config, path);
  if (!node) return HEXAD_OK;
  if (!node->is_primitive() || node->is_string())
    return set_error(call, HEXAD_INVALID_ARGUMENT, (std::string(path) + " has a wrong type").c_str(), UINT64_MAX);
  *inout = node->is_boolean() ? static_cast<T>(node->get<bool>()) : node->get<T>();
  return HEXAD_OK;
}

inline hexad_code forward_error(hexad_call* call, hexad_code code) {
  return code == HEXAD_OK ? code : set_error(call, code, runtime_test::runtime().error(), UINT64_MAX);
}

inline const hexad_host& host() {
  static const hexad_host table = [] {
    hexad_host t{};
    t.struct_size = HEXAD_STRUCT_SIZE(hexad_host, extension);
    t.version = "test";
    t.set_error = set_error;
    t.log_enabled = [](int32_t) { return int32_t{1}; };
    t.log = [](hexad_call*, int32_t, const char* text, uint64_t size) { logged().emplace_back(text, size); };
    t.metric = [](hexad_call*, const char* name, double value, double, int32_t) {
      reported()[name] = value;
      return hexad_code{HEXAD_OK};
    };
    t.config_i64 = read<int64_t>;
    t.config_f64 = read<double>;
    t.config_bool = read<int32_t>;
    t.config_str = [](hexad_call*, const hexad_config* config, const char* path, const char** inout) {
      if (const json* node = find(config, path)) {
        auto& kept = const_cast<hexad_config*>(config)->texts[path];
        kept = node->get<std::string>();
        *inout = kept.c_str();
      }
      return hexad_code{HEXAD_OK};
    };
    t.config_json = [](hexad_call*, const hexad_config* config, const char* path, const char** out) {
      const json* node = find_any(config, path);  // "null" where that is written
      auto& kept = const_cast<hexad_config*>(config)->texts[std::string("json ") + path];
      if (node) kept = node->dump();
      *out = node ? kept.c_str() : nullptr;
      return hexad_code{HEXAD_OK};
    };
    t.device = [](hexad_call*, int32_t* type, int32_t* id) {
      *type = runtime_test::device().device_type, *id = runtime_test::device().device_id;
      return hexad_code{HEXAD_OK};
    };
    t.stream = [](hexad_call*, int32_t type, int32_t id) { return runtime_test::runtime().stream(type, id); };
    t.cancelled = [](hexad_call*) { return int32_t{0}; };
    t.deadline_ns = [](hexad_call*) { return std::numeric_limits<int64_t>::max(); };
    t.step = [](hexad_call*) { return int64_t{0}; };
    t.flags = [](hexad_call*) { return uint64_t{0}; };
    t.alloc = [](hexad_call* call, int32_t type, int32_t id, uint64_t bytes, void** out) {
      return forward_error(call, runtime_test::runtime().alloc(type, id, bytes, out));
    };
    t.free = [](void* pointer, int32_t type, int32_t id) { runtime_test::runtime().free(pointer, type, id); };
    t.comm_axis = [](hexad_call* call, const char* axis, hexad_comm** out) {
      group_name() = axis;
      return forward_error(call, runtime_test::runtime().comm_axis(axis, out));
    };
    t.comm_rank = [](const hexad_comm* comm) { return runtime_test::runtime().comm_rank(comm); };
    t.comm_size = [](const hexad_comm* comm) { return runtime_test::runtime().comm_size(comm); };
    t.comm_new = [](hexad_call* call, const int32_t* ranks, int32_t count, const char* name, hexad_comm** out) {
      group_name() = name;
      return forward_error(call, runtime_test::runtime().comm_new(ranks, count, name, out));
    };
    t.comm_native = [](hexad_call* call, hexad_comm* comm, const char* kind, void** out) {
      const hexad_code code = forward_error(call, runtime_test::runtime().comm_native(comm, kind, out));
      if (code == HEXAD_OK && wrap_group()) *out = wrap_group()(*out);
      return code;
    };
    t.range_push = [](hexad_call*, const char*) {};
    t.range_pop = [](hexad_call*) {};
    return t;
  }();
  return table;
}

// Starts the runtime for this rank, once a process.
inline void start_runtime(const rank_process::Rank& rank) {
  static const bool started = [&] {
    runtime_test::start(rank, 60000);
    return true;
  }();
  (void)started;
}

// This process as the only rank.
inline const rank_process::Rank& one_rank() {
  static const rank_process::Rank rank{0, 1, 0, ""};
  start_runtime(rank);
  return rank;
}

// The backend that this test program tests; each program defines it.
const char* plugin_name();

inline const hexad_plugin_desc& description_of(const std::string& plugin) {
  static std::map<std::string, const hexad_plugin_desc*> loaded;
  const hexad_plugin_desc*& description = loaded[plugin];
  if (!description) {
    const std::string file = rank_process::environment("HEXAD_BUILD_DIR") + "/lib/hexad/plugins/lib" + plugin + ".so";
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, dlerror());
    const auto query = reinterpret_cast<hexad_plugin_query_fn>(dlsym(library, "hexad_plugin_query_v1"));
    description = query(&host());
    REQUIRE(description->name == plugin);
  }
  return *description;
}

inline const hexad_backend_vtable& vtable_of(const std::string& plugin) { return *description_of(plugin).backend; }

inline const hexad_backend_vtable& vtable() { return vtable_of(plugin_name()); }

}  // namespace backend_test
