#include "core/plugin/confined/questions.hpp"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"

namespace hexad::plugin::confined {
namespace {

// The beginning of every reply.
Writer reply_of(hexad_code code, const std::string& text) {
  Writer out;
  out.put(code);
  out.text(text);
  return out;
}

void pass_on_log(Reader in) {
  const int32_t level = std::clamp<int32_t>(in.get<int32_t>(), SPDLOG_LEVEL_TRACE, SPDLOG_LEVEL_CRITICAL);
  spdlog::log(static_cast<spdlog::level::level_enum>(level), "{}", in.text());
}

}  // namespace

std::optional<std::string> Questions::serve(const Frame& frame) {
  const Reader in(frame.bytes);
  switch (frame.kind) {
    case kLog: pass_on_log(in); return std::nullopt;
    case kMetric: metric(in); return std::nullopt;
    case kDetokenize: return detokenize(in);
    case kConfig: return read_config(in);
    case kSink: return sink(frame.bytes);
    default: throw BadPacket("a message that is no part of a call");
  }
}

void Questions::metric(Reader in) {
  const std::string name = in.text();
  const auto value = in.get<double>(), weight = in.get<double>();
  const auto reduce = in.get<int32_t>();
  const Call& outer = Call::from(call_);
  Call call(outer.context(), outer.who());
  try {
    if (host_table(nullptr)->metric(call.handle(), name.c_str(), value, weight, reduce) != HEXAD_OK)
      failure_ = call.error_text();
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

std::string Questions::detokenize(Reader in) const {
  const auto ids = in.array<int32_t>();
  const CallContext& context = Call::from(call_).context();
  try {
    if (!context.detokenize) throw std::runtime_error("this run has no tokenizer");
    const std::string text = context.detokenize(ids);
    Writer out = reply_of(HEXAD_OK, "");
    out.text(text);
    return out.bytes();
  } catch (const std::exception& error) {
    return reply_of(HEXAD_INTERNAL, error.what()).bytes();
  }
}

// The plugin's own read, done here: so errors name the place in the file, and keys that nothing reads are known.
std::string Questions::read_config(Reader in) const {
  if (!config_) return reply_of(HEXAD_FAILED_PRECONDITION, "this call has no configuration").bytes();
  const auto type = in.get<ConfigType>();
  const std::string path = in.text();
  const hexad_host& host = *host_table(nullptr);
  const Call& outer = Call::from(call_);
  Call call(outer.context(), outer.who());
  Writer value;
  hexad_code code = HEXAD_OK;
  const auto number = [&](auto read, auto inout) {
    code = read(call.handle(), config_, path.c_str(), &inout);
    value.put(inout);
  };
  const auto text = [&](auto read) {
    const char* found = nullptr;
    code = read(call.handle(), config_, path.c_str(), &found);
    value.optional_text(found);
  };
  switch (type) {
    case ConfigType::i64: number(host.config_i64, in.get<int64_t>()); break;
    case ConfigType::f64: number(host.config_f64, in.get<double>()); break;
    case ConfigType::boolean: number(host.config_bool, in.get<int32_t>()); break;
    case ConfigType::text: text(host.config_str); break;
    case ConfigType::json: text(host.config_json); break;
    default: throw BadPacket("a configuration value of no known type");
  }
  Writer out = reply_of(code, call.error_text());
  if (code == HEXAD_OK) out.append(value.bytes());
  return out.bytes();
}

std::string Questions::sink(std::string_view bytes) const {
  if (!request_.sink) throw BadPacket("state that nobody asked for");
  return reply_of(request_.sink(request_.sink_ctx, bytes.data(), bytes.size()), "").bytes();
}

}  // namespace hexad::plugin::confined
