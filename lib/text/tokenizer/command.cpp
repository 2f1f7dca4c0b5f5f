#include "lib/text/tokenizer/command.hpp"

#include <ostream>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/json.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

// One line with its place, "FILE:LINE".
struct Line {
  Json value;
  std::string where;

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::data, "{}: {}", where, fmt::format(format, std::forward<Args>(args)...));
  }

  bool flag(const char* key, bool fallback) const {
    if (!value.contains(key)) return fallback;
    if (!value.at(key).is_boolean()) refuse("\"{}\" wants true or false", key);
    return value.at(key).get<bool>();
  }

  const std::string& text(const char* key) const {
    if (!value.at(key).is_string()) refuse("\"{}\" wants a string", key);
    return value.at(key).get_ref<const std::string&>();
  }

  std::vector<int32_t> ids(const char* key) const {
    if (!value.contains(key) || !value.at(key).is_array()) refuse("wanted \"{}\": a list of token ids", key);
    std::vector<int32_t> result;
    for (const Json& id : value.at(key)) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
        refuse("\"{}\"[{}] wants a token id, a whole number from 0", key, result.size());
      }
      result.push_back(id.get<int32_t>());
    }
    return result;
  }
};

Line parse_line(const std::string& text, const std::string& where) {
  Line line{parse_data(text, where), where};
  if (line.value.is_array()) line.refuse("wanted a JSON object a line, got a list: jq -c '.[]' makes lines of it");
  if (!line.value.is_object()) line.refuse("wanted a JSON object");
  return line;
}

// What the tokenizer says of the line's text, with the line's place.
std::vector<int32_t> encoded(const Tokenizer& tokenizer, const Line& line, const std::string& text, bool special) {
  try {
    return tokenizer.encode(text, special);
  } catch (const Error& error) {
    line.refuse("{}", error.what());
  }
}

Json encode_line(const Tokenizer& tokenizer, const Line& line, const ChatRenderer& render) {
  if (line.value.contains("text")) {
    return {{"token_ids", encoded(tokenizer, line, line.text("text"), line.flag("add_special_tokens", true))}};
  }
  if (!line.value.contains("messages")) line.refuse("wanted \"text\" or \"messages\"");
  if (!render) line.refuse("\"messages\" need a chat template, and the model folder has none");
  const std::string text = render(line.value, line.where);
  return {{"token_ids", encoded(tokenizer, line, text, false)}, {"text", text}};
}

Json decode_line(const Tokenizer& tokenizer, const Line& line) {
  return {{"text", tokenizer.decode(line.ids("token_ids"), line.flag("skip_special_tokens", false))}};
}

}  // namespace

int tokenize_file(const std::filesystem::path& model_dir, const std::filesystem::path& input, std::ostream& out,
                  bool decode, const ChatRenderer& render) {
  const auto tokenizer = Tokenizer::load(model_dir);
  InputFile in(input);
  skip_mark(in, input);
  std::string text;
  int written = 0;
  for (int number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Line line = parse_line(text, fmt::format("{}:{}", input.string(), number));
    const Json result = decode ? decode_line(*tokenizer, line) : encode_line(*tokenizer, line, render);
    out << json_text(result) << '\n';
    ++written;
  }
  return written;
}

}  // namespace hexad::text
