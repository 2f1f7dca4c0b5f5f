#include "lib/http/client/error_text.hpp"

#include <nlohmann/json.hpp>

namespace hexad::http::client {

std::string shown(std::string_view text) {
  constexpr size_t kMost = 300;  // bytes
  std::string cut(text.substr(0, kMost));
  for (char& c : cut) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text.size() > kMost ? cut + "..." : cut;
}

std::string error_text(std::string_view body) {
  using Json = nlohmann::json;
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto text_at = [&](const char* pointer) -> std::string {
    const Json::json_pointer at(pointer);
    return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
  };
  if (json.is_object()) {
    for (const char* pointer : {"/error/message", "/message", "/error", "/detail"}) {
      if (const std::string text = text_at(pointer); !text.empty()) return shown(text);
    }
  }
  return shown(body);
}

}  // namespace hexad::http::client
