#include "lib/yaml/source.hpp"

#include <algorithm>
#include <optional>

#include "lib/base/said/secret.hpp"
#include "lib/yaml/interpolation_grammar.hpp"
#include "lib/yaml/scalar.hpp"

namespace hexad::yaml {
namespace {

// Backslashes count before "${" and before the end of a quotation, where two of them are one.
void double_last_backslashes(std::string& text) {
  const size_t end = text.find_last_not_of('\\') + 1;  // npos + 1 is 0
  text.append(text.size() - end, '\\');
}

// Text in which "${" stands for itself, and `quote` too unless it is '\0'.
std::string escaped(std::string_view text, char quote) {
  std::string out;
  for (size_t i = 0; i <= text.size(); ++i) {
    const size_t begin = i;
    while (i < text.size() && text[i] == '\\') ++i;
    const size_t backslashes = i - begin;
    if (i == text.size()) return out.append(backslashes, '\\');
    const bool special = text.substr(i).starts_with("${") || (quote != '\0' && text[i] == quote);
    out.append(special ? 2 * backslashes + 1 : backslashes, '\\') += text[i];
  }
  return out;
}

bool is_plain_word(const std::string& text) {
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return is_word_char(c) && c != '\\' && c != '$'; }))
    return false;
  return std::holds_alternative<std::string>(word_value(text));
}

// One interpolation alone is an argument as it is; text with one in it stands within quotes.
std::optional<std::string> source_argument(const std::string& source) {
  if (source == kMasked) return std::nullopt;
  if (parse_interpolation(source).kind != Expression::Kind::text) return source;
  for (const char quote : {'\'', '"'})
    if (source.find(quote) == source.npos && !source.ends_with('\\')) return quote + source + quote;
  return std::nullopt;
}

std::optional<std::string> argument(const Node& value);

std::optional<std::string> list_argument(const Node::List& items) {
  std::string inside;
  for (const Node& item : items) {
    const auto text = argument(item);
    if (!text) return std::nullopt;
    inside += (inside.empty() ? "" : ", ") + *text;
  }
  return "[" + inside + "]";
}

std::optional<std::string> map_argument(const Node::Map& entries) {
  std::string inside;
  for (const auto& [key, value] : entries) {
    const auto text = argument(value);
    if (!text || !is_plain_word(key)) return std::nullopt;
    inside += (inside.empty() ? "" : ", ") + key + ": " + *text;
  }
  return "{" + inside + "}";
}

std::optional<std::string> argument(const Node& value) {
  if (!value.source().empty()) return source_argument(value.source());
  if (value.is_null()) return "null";
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_number()) return python_str(value);
  if (value.is_list()) return list_argument(value.items());
  if (value.is_map()) return map_argument(value.entries());
  if (is_plain_word(value.as_string())) return value.as_string();
  std::string quoted = "'" + escaped(value.as_string(), '\'');
  double_last_backslashes(quoted);
  return quoted + "'";
}

}  // namespace

bool has_source(const Node& value) {
  if (!value.source().empty()) return true;
  if (value.is_list()) return std::ranges::any_of(value.items(), has_source);
  return value.is_map() &&
         std::ranges::any_of(value.entries(), [](const auto& entry) { return has_source(entry.second); });
}

std::string call_source(const std::string& name, const std::vector<Node>& arguments) {
  std::string text;
  for (const Node& each : arguments) {
    const auto written = argument(each);
    if (!written) return std::string(kMasked);
    text += (text.empty() ? "" : ",") + *written;
  }
  return "${" + name + ":" + text + "}";
}

std::string text_source(const std::vector<Node>& parts) {
  std::string out, literal;
  for (const Node& part : parts) {
    if (part.source() == kMasked || (part.source().empty() && has_source(part))) return std::string(kMasked);
    if (part.source().empty()) {
      literal += python_str(part);
      continue;
    }
    out += escaped(std::exchange(literal, ""), '\0');
    if (part.source().starts_with("${")) double_last_backslashes(out);
    out += part.source();
  }
  return out + escaped(literal, '\0');
}

}  // namespace hexad::yaml
