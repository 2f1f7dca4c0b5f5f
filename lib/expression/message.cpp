#include "lib/expression/message.hpp"

#include <algorithm>

#include "lib/expression/token.hpp"
#include "lib/expression/value.hpp"

namespace hexad::expression {
namespace {

// The } that ends the expression at `at`; one in quotes does not.
size_t end_of_expression(std::string_view text, size_t at) {
  char quote = '\0';
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != '\0') {
      if (c == '\\')
        ++at;
      else if (c == quote)
        quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '}') {
      return at;
    }
  }
  return std::string_view::npos;
}

Expression parse_within(std::string_view message, size_t begin, size_t end) {
  try {
    return Expression::parse(message.substr(begin, end - begin));
  } catch (const ParseError& error) {
    throw ParseError(characters(message.substr(0, begin)) + error.column(), error.reason());
  }
}

}  // namespace

Message Message::parse(std::string_view text) {
  Message message;
  message.text_ = text;
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c == '{' || c == '}') && text.substr(at + 1).starts_with(c)) {
      plain += text[at++];
    } else if (c == '}') {
      fail_at(text, at, "got '}', wanted '}}', which stands for a brace, or a '{' before it");
    } else if (c == '{') {
      const size_t end = end_of_expression(text, at + 1);
      if (end == text.npos) fail_at(text, at, "got '{' without its '}', wanted {expression}, or '{{' for a brace");
      message.parts_.emplace_back(std::exchange(plain, ""));
      message.parts_.emplace_back(parse_within(text, at + 1, end));
      at = end;
    } else {
      const size_t brace = std::min(text.find_first_of("{}", at), text.size());
      plain += text.substr(at, brace - at);
      at = brace - 1;
    }
  }
  message.parts_.emplace_back(std::move(plain));
  for (const auto& part : message.parts_) {
    const Expression* expression = std::get_if<Expression>(&part);
    if (!expression) continue;
    for (const std::string& path : expression->paths()) {
      if (std::ranges::find(message.paths_, path) == message.paths_.end()) message.paths_.push_back(path);
    }
  }
  return message;
}

std::string Message::format(const Lookup& lookup) const {
  std::string text;
  for (const auto& part : parts_) {
    if (const std::string* plain = std::get_if<std::string>(&part)) {
      text += *plain;
    } else {
      const std::optional<Value> value = std::get<Expression>(part).evaluate(lookup);
      text += value ? value->text() : "?";
    }
  }
  return text;
}

}  // namespace hexad::expression
