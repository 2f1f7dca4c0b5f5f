#include "lib/base/json.hpp"

#include <cmath>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace hexad {
namespace {

// Where the text opens more levels than that; npos if it does not.
size_t too_deep(std::string_view text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      while (++i < text.size() && text[i] != '"') i += text[i] == '\\';
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return i;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0;
    }
  }
  return std::string_view::npos;
}

enum class Numbers { as_written, by_value };

std::string number_text(const nlohmann::ordered_json::binary_t& characters, Numbers numbers) {
  std::string text(characters.begin(), characters.end());
  return numbers == Numbers::as_written ? text : json_text(parse_json<nlohmann::ordered_json>(text));
}

void append(const nlohmann::ordered_json& value, Numbers numbers, std::string& out) {
  if (value.is_binary()) {
    out += number_text(value.get_binary(), numbers);
    return;
  }
  if (!value.is_structured()) {
    out += json_text(value);
    return;
  }
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!std::exchange(first, false)) out += ',';
    if (value.is_object()) out += json_text(nlohmann::ordered_json(key)) + ":";
    append(item, numbers, out);
  }
  out += value.is_object() ? '}' : ']';
}

}  // namespace

template <typename J>
J parse_json(std::string_view text) {
  if (const size_t place = too_deep(text); place != text.npos)
    throw J::parse_error::create(101, place + 1, fmt::format("nested more than {} levels deep", kDeepestJson), nullptr);
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
J file_json(const std::string& text, const std::filesystem::path& file) {
  try {
    return parse_json<J>(text);
  } catch (const typename J::parse_error& error) {
    if (const std::string_view hint = lfs_hint(text); !hint.empty()) fail(ErrorKind::data, "{}{}", file.string(), hint);
    fail(ErrorKind::data, "{}: not valid JSON: {}", file.string(), error.what());
  }
}

template <typename J>
J read_json(const std::filesystem::path& file) {
  return file_json<J>(read_file(file), file);
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json with_named_infinities(nlohmann::ordered_json value) {
  if (value.is_structured()) {
    for (auto& item : value) item = with_named_infinities(std::move(item));
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    value = fmt::format("{}", value.get<double>());
  }
  return value;
}

std::string data_text(const nlohmann::ordered_json& value) {
  std::string text;
  append(value, Numbers::as_written, text);
  return text;
}

std::string value_text(const nlohmann::ordered_json& value) {
  std::string text;
  append(value, Numbers::by_value, text);
  return text;
}

template nlohmann::json parse_json(std::string_view);
template nlohmann::json parse_json(std::string_view, const nlohmann::json::parser_callback_t&);
template nlohmann::json try_parse_json(std::string_view);
template nlohmann::json file_json(const std::string&, const std::filesystem::path&);
template nlohmann::json read_json(const std::filesystem::path&);
template nlohmann::ordered_json parse_json(std::string_view);
template nlohmann::ordered_json parse_json(std::string_view, const nlohmann::ordered_json::parser_callback_t&);
template nlohmann::ordered_json try_parse_json(std::string_view);
template nlohmann::ordered_json file_json(const std::string&, const std::filesystem::path&);
template nlohmann::ordered_json read_json(const std::filesystem::path&);

}  // namespace hexad
