#include "core/base/json.hpp"

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace hexad {

template <typename J>
J parse_json(std::string_view text) {
  return J::parse(text);
}

template <typename J>
J parse_json(std::string_view text, const typename J::parser_callback_t& watch) {
  return J::parse(text, watch);
}

template <typename J>
J try_parse_json(std::string_view text) {
  return J::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <typename J>
J read_json(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    return J::parse(text);
  } catch (const typename J::parse_error& error) {
    fail(ErrorKind::data, "{}: not valid JSON: {}", file.string(), error.what());
  }
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

template nlohmann::json parse_json(std::string_view);
template nlohmann::json parse_json(std::string_view, const nlohmann::json::parser_callback_t&);
template nlohmann::json try_parse_json(std::string_view);
template nlohmann::json read_json(const std::filesystem::path&);
template nlohmann::ordered_json parse_json(std::string_view);
template nlohmann::ordered_json parse_json(std::string_view, const nlohmann::ordered_json::parser_callback_t&);
template nlohmann::ordered_json try_parse_json(std::string_view);
template nlohmann::ordered_json read_json(const std::filesystem::path&);

}  // namespace hexad
