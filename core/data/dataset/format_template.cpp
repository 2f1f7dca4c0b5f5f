#include <cctype>
#include <cstring>

#include "core/data/dataset/processor.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/text.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::data {
namespace {

[[noreturn]] void refuse(std::string_view where, std::string_view what) {
  fail(ErrorKind::data, "{}: {}; a literal brace is written twice: {{{{ or }}}}", where, what);
}

}  // namespace

std::string format_template(std::string_view text, const std::vector<std::string>& arguments, std::string_view where) {
  std::string result;
  size_t automatic = 0;
  bool numbered = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      result += c;
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == c) {
      result += c;
      ++i;
      continue;
    }
    if (c == '}') refuse(where, "single '}' in the template");
    const size_t end = text.find('}', i);
    if (end == std::string_view::npos) refuse(where, "'{' without '}' in the template");
    const std::string field(text.substr(i + 1, end - i - 1));
    size_t index = automatic;
    if (field.empty()) {
      if (numbered) refuse(where, "{} and numbered fields do not mix");
      ++automatic;
    } else {
      const bool digits = field.size() < 4 && field.find_first_not_of("0123456789") == std::string::npos;
      if (!digits) refuse(where, fmt::format("unknown replacement field '{{{}}}', want {{}}", field));
      if (automatic > 0) refuse(where, "{} and numbered fields do not mix");
      numbered = true;
      index = std::stoul(field);
    }
    if (index >= arguments.size()) {
      refuse(where, fmt::format("replacement field {} of {} value(s)", index + 1, arguments.size()));
    }
    result += arguments[index];
    i = end;
  }
  if (automatic == 0 && !numbered) refuse(where, "no {} in the template: it has no place for the question");
  return result;
}

std::string read_prompt_file(const std::string& path) {
  InputFile in(path, [](const std::string& file, const char*, int reason) {
    fail(ErrorKind::data, "{}: the prompt file cannot be read (prompt_file, system_prompt_file): {}", file,
         std::strerror(reason));
  });
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  const bool is_text = utf8_prefix(text) == text.size() && text.find('\0') == text.npos;
  if (!is_text || trimmed(text).empty())
    fail(ErrorKind::data, "{}: want text in UTF-8, {} (prompt_file, system_prompt_file)", path,
         is_text ? "the file is blank: leave the key out for none" : "and the file holds other bytes");
  return text;
}

}  // namespace hexad::data
