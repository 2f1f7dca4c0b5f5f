// The configuration services of the host table.
#include <cmath>

#include "core/plugin/host/services.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::plugin {
namespace {

using Json = PluginConfig::Json;

// Looks `path` up and calls take(value); false from it is a type error. `otherwise()` is the plugin's own default.
template <typename Otherwise, typename Take>
hexad_code read(hexad_call* call, const hexad_config* config, const char* path, ReadAs as, const char* wanted,
                Otherwise&& otherwise, Take&& take) {
  hexad_code code = HEXAD_OK;
  const hexad_code thrown = guarded(call, [&] {
    const PluginConfig& self = PluginConfig::from(config);
    if (self.records_reads()) self.note_read(path, as, otherwise());
    const Json* value = self.find(path);
    if (value && !take(self, *value)) {
      code = Call::from(call).set_error(HEXAD_INVALID_ARGUMENT, self.type_error(path, wanted, *value));
    }
  });
  return thrown != HEXAD_OK ? thrown : code;
}

hexad_code config_i64(hexad_call* call, const hexad_config* config, const char* path, int64_t* inout) {
  const auto otherwise = [&] { return Json(*inout); };
  return read(call, config, path, ReadAs::i64, "a whole number", otherwise,
              [&](const PluginConfig&, const Json& value) {
                if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return false;
                if (value.is_number_integer()) {
                  *inout = value.get<int64_t>();
                  return true;
                }
                const double number = value.is_number_float() ? value.get<double>() : NAN;
                if (!(std::abs(number) < 9e15) || number != std::floor(number)) return false;
                *inout = static_cast<int64_t>(number);
                return true;
              });
}

hexad_code config_f64(hexad_call* call, const hexad_config* config, const char* path, double* inout) {
  const auto otherwise = [&] { return Json(*inout); };
  return read(call, config, path, ReadAs::f64, "a number", otherwise, [&](const PluginConfig&, const Json& value) {
    if (value.is_number()) *inout = value.get<double>();
    return value.is_number();
  });
}

hexad_code config_bool(hexad_call* call, const hexad_config* config, const char* path, int32_t* inout) {
  const auto otherwise = [&] { return Json(*inout != 0); };
  return read(call, config, path, ReadAs::boolean, "true or false", otherwise,
              [&](const PluginConfig&, const Json& value) {
                if (value.is_boolean()) *inout = value.get<bool>();
                return value.is_boolean();
              });
}

hexad_code config_str(hexad_call* call, const hexad_config* config, const char* path, const char** inout) {
  const auto otherwise = [&] { return *inout ? Json(*inout) : Json(); };
  return read(call, config, path, ReadAs::text, "a text", otherwise, [&](const PluginConfig& self, const Json& value) {
    if (value.is_string()) *inout = self.keep(value.get<std::string>());
    return value.is_string();
  });
}

hexad_code config_json(hexad_call* call, const hexad_config* config, const char* path, const char** out) {
  return guarded(call, [&] { *out = PluginConfig::from(config).json_text(path); });
}

}  // namespace

void add_config_services(hexad_host& host) {
  host.config_i64 = config_i64;
  host.config_f64 = config_f64;
  host.config_bool = config_bool;
  host.config_str = config_str;
  host.config_json = config_json;
}

}  // namespace hexad::plugin
