#include "core/plugin/host/table.hpp"

#include <spdlog/spdlog.h>

#include <mutex>

#include "core/plugin/host/services.hpp"
#include "lib/base/error.hpp"
#include "lib/installation/home.hpp"

namespace hexad::plugin {
namespace {

hexad_code set_error(hexad_call* call, hexad_code code, const char* text, uint64_t size) {
  const std::string_view view = !text ? "" : size == UINT64_MAX ? std::string_view(text) : std::string_view(text, size);
  return Call::from(call).set_error(code, view);
}

spdlog::level::level_enum log_level(int32_t level) {
  switch (level) {
    case HEXAD_LOG_DEBUG: return spdlog::level::debug;
    case HEXAD_LOG_INFO: return spdlog::level::info;
    case HEXAD_LOG_WARN: return spdlog::level::warn;
    default: return spdlog::level::err;
  }
}

int32_t log_enabled(int32_t level) { return spdlog::should_log(log_level(level)); }

void log(hexad_call* call, int32_t level, const char* text, uint64_t size) {
  const std::string_view line = size == UINT64_MAX ? std::string_view(text) : std::string_view(text, size);
  spdlog::log(log_level(level), "{}: {}", call ? Call::from(call).who() : "plugin", line);
}

hexad_code metric(hexad_call* call, const char* name, double value, double weight, int32_t reduce) {
  Call& self = Call::from(call);
  if (!*name) {
    if (self.context().alive) self.context().alive();
    return HEXAD_OK;
  }
  if (!self.context().metric) return self.set_error(HEXAD_UNIMPLEMENTED, "metrics are not taken during this call");
  if (reduce < HEXAD_REDUCE_SUM || reduce > HEXAD_REDUCE_LAST) {
    return self.set_error(HEXAD_INVALID_ARGUMENT, fmt::format("metric '{}': unknown reduction {}", name, reduce));
  }
  self.context().metric({name, value, weight, reduce});
  return HEXAD_OK;
}

hexad_code device(hexad_call* call, int32_t* device_type, int32_t* device_id) {
  const DLDevice& device = Call::from(call).context().device;
  *device_type = device.device_type;
  *device_id = device.device_id;
  return HEXAD_OK;
}

int32_t cancelled(hexad_call* call) {
  const std::atomic<bool>* flag = Call::from(call).context().cancelled;
  return flag && flag->load(std::memory_order_relaxed);
}
int64_t deadline_ns(hexad_call* call) { return Call::from(call).context().deadline_ns; }
int64_t step(hexad_call* call) { return Call::from(call).context().step; }
uint64_t flags(hexad_call* call) { return Call::from(call).context().flags; }

hexad_code detokenize(hexad_call* call, const int32_t* ids, int64_t count, char* text, uint64_t* size) {
  Call& self = Call::from(call);
  if (!self.context().detokenize) return self.set_error(HEXAD_UNIMPLEMENTED, "this run has no tokenizer");
  return guarded(call, [&] {
    const std::string result = self.context().detokenize({ids, static_cast<size_t>(count)});
    if (result.size() <= *size) std::copy(result.begin(), result.end(), text);
    *size = result.size();
  });
}

const void* extension(const char*, uint32_t) { return nullptr; }

hexad_host common_services() {
  hexad_host host{};
  host.struct_size = HEXAD_STRUCT_SIZE(hexad_host, extension);
  host.abi_minor = HEXAD_ABI_MINOR;
  host.version = installation::version();
  host.set_error = set_error;
  host.log_enabled = log_enabled;
  host.log = log;
  host.metric = metric;
  add_config_services(host);
  host.device = device;
  host.cancelled = cancelled;
  host.deadline_ns = deadline_ns;
  host.step = step;
  host.flags = flags;
  host.detokenize = detokenize;
  host.extension = extension;
  return host;
}

}  // namespace

const hexad_host* host_table(const hexad_runtime* runtime) {
  static std::mutex mutex;
  static const hexad_host* tables[2] = {};  // without and with a runtime; never freed
  const std::scoped_lock lock(mutex);
  const hexad_host*& table = tables[runtime != nullptr];
  if (table && table->ctx != runtime) fail(ErrorKind::internal, "a process has one runtime; a second one was given");
  if (!table) {
    auto* host = new hexad_host(common_services());
    host->ctx = const_cast<hexad_runtime*>(runtime);
    runtime ? add_runtime_services(*host, runtime) : add_plain_services(*host);
    table = host;
  }
  return table;
}

const hexad_runtime* runtime_of(const hexad_host* host) { return static_cast<const hexad_runtime*>(host->ctx); }

}  // namespace hexad::plugin
