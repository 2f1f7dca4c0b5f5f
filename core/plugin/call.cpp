#include "core/plugin/call.hpp"

#include <fmt/format.h>

#include "lib/base/utf8.hpp"

namespace hexad::plugin {

hexad_code Call::set_error(hexad_code code, std::string_view text) {
  const std::scoped_lock lock(mutex_);
  constexpr size_t kMostBytes = size_t{64} << 10;  // a message, whatever a plugin has to say
  if (code_ == HEXAD_OK) code_ = code, text_ = shortened(text, kMostBytes);
  return code;
}

hexad_code Call::error_code() const {
  const std::scoped_lock lock(mutex_);
  return code_;
}

std::string Call::error_text() const {
  const std::scoped_lock lock(mutex_);
  return text_;
}

const std::string& Call::keep(std::string bytes) {
  const std::scoped_lock lock(mutex_);
  return kept_.emplace_back(std::move(bytes));
}

std::string code_name(hexad_code code) {
  switch (code) {
    case HEXAD_OK: return "OK";
    case HEXAD_CANCELLED: return "CANCELLED";
    case HEXAD_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case HEXAD_DEADLINE_EXCEEDED: return "DEADLINE_EXCEEDED";
    case HEXAD_NOT_FOUND: return "NOT_FOUND";
    case HEXAD_RESOURCE_EXHAUSTED: return "RESOURCE_EXHAUSTED";
    case HEXAD_FAILED_PRECONDITION: return "FAILED_PRECONDITION";
    case HEXAD_UNIMPLEMENTED: return "UNIMPLEMENTED";
    case HEXAD_INTERNAL: return "INTERNAL";
    case HEXAD_UNAVAILABLE: return "UNAVAILABLE";
    case HEXAD_DATA_LOSS: return "DATA_LOSS";
    default: return fmt::format("code {}", code);
  }
}

}  // namespace hexad::plugin
