// The host table of a confined plugin: the plain one, whose configuration the engine is asked for, read by read.
#include "core/plugin/confined/serve/served_call.hpp"
#include "core/plugin/host/services.hpp"
#include "core/plugin/host/table.hpp"

namespace hexad::plugin::confined {
namespace {

// Asks for the value at `path`; take(reader) reads it if there was no error.
template <typename Take>
hexad_code ask(hexad_call* call, ConfigType type, const char* path, const Writer& inout, Take&& take) {
  hexad_code code = HEXAD_OK;
  const hexad_code thrown = guarded(call, [&] {
    Writer question;
    question.put(type);
    question.text(path);
    question.append(inout.bytes());
    std::string text;
    const std::string reply = ServedCall::from(call).lane.ask(kConfig, question.bytes(), code, text);
    if (code != HEXAD_OK) {
      Call::from(call).set_error(code, text);
      return;
    }
    Reader in(reply);
    take(in);
  });
  return thrown != HEXAD_OK ? thrown : code;
}

template <typename T>
hexad_code ask_number(hexad_call* call, ConfigType type, const char* path, T* inout) {
  Writer known;
  known.put(*inout);
  return ask(call, type, path, known, [&](Reader& in) { *inout = in.get<T>(); });
}

// The engine's texts live as long as the instance; so do these.
const char* keep(const hexad_config* config, std::string text) {
  auto& kept = *const_cast<ServedConfig*>(reinterpret_cast<const ServedConfig*>(config));
  const std::scoped_lock lock(kept.mutex);
  return kept.texts.emplace_back(std::move(text)).c_str();
}

hexad_code asked_i64(hexad_call* call, const hexad_config*, const char* path, int64_t* inout) {
  return ask_number(call, ConfigType::i64, path, inout);
}
hexad_code asked_f64(hexad_call* call, const hexad_config*, const char* path, double* inout) {
  return ask_number(call, ConfigType::f64, path, inout);
}
hexad_code asked_bool(hexad_call* call, const hexad_config*, const char* path, int32_t* inout) {
  return ask_number(call, ConfigType::boolean, path, inout);
}
hexad_code asked_str(hexad_call* call, const hexad_config* config, const char* path, const char** inout) {
  return ask(call, ConfigType::text, path, {}, [&](Reader& in) {
    if (in.has()) *inout = keep(config, in.text());
  });
}
hexad_code asked_json(hexad_call* call, const hexad_config* config, const char* path, const char** out) {
  return ask(call, ConfigType::json, path, {},
             [&](Reader& in) { *out = in.has() ? keep(config, in.text()) : nullptr; });
}

}  // namespace

const hexad_host* served_host() {
  static const hexad_host* table = [] {
    auto* host = new hexad_host(*host_table(nullptr));
    host->config_i64 = asked_i64;
    host->config_f64 = asked_f64;
    host->config_bool = asked_bool;
    host->config_str = asked_str;
    host->config_json = asked_json;
    return host;
  }();
  return table;
}

}  // namespace hexad::plugin::confined
