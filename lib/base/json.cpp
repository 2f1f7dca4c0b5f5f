#include "lib/base/json.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

namespace hexad {
namespace {

// nlohmann copies and prints a value with a call a level: a stranger's text could end the stack.
constexpr int kDeepest = 500;

// Where the text opens more levels than that; npos if it does not.
size_t too_deep(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      while (++i < text.size() && text[i] != '"') i += text[i] == '\\';
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

}  // namespace

template <typename J>
J parse_json(std::string_view text) {
  if (const size_t place = too_deep(text); place != text.npos)
    throw J::parse_error::create(101, place + 1, fmt::format("nested more than {} levels deep", kDeepest), nullptr);
  return J::parse(text);
}

template <typename J>
J parse_json(std::string_view text, const typename J::parser_callback_t& watch) {
  return J::parse(text, watch);
}

template <typename J>
J try_parse_json(std::string_view text) {
  if (too_deep(text) != text.npos) return J(J::value_t::discarded);
  return J::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <typename J>
J read_json(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    return parse_json<J>(text);
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
