// One object of a tokenizer.json with its place in the file, so that every complaint can name it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/base/error.hpp"
#include "lib/text/tokenizer/pattern/regex.hpp"

namespace hexad::text {

class Component {
 public:
  // `where`: "models/x/tokenizer.json: pre_tokenizer". Throws unless `value` is an object. Keeps a reference.
  Component(const nlohmann::json& value, std::string where);

  const nlohmann::json& value() const { return value_; }
  const std::string& where() const { return where_; }
  bool has(const char* key) const;  // present and not null

  std::string type() const { return text("type"); }
  std::string text(const char* key) const;
  std::string text_or(const char* key, const std::string& fallback) const;
  bool boolean_or(const char* key, bool fallback) const;
  int64_t integer(const char* key, int64_t lowest, int64_t highest) const;
  const nlohmann::json& array(const char* key) const;
  Component child(const char* key) const;
  // Elements of an array of objects: where "pre_tokenizer.pretokenizers[1]". Throws when nested deeper than 16.
  std::vector<Component> children(const char* key) const;

  // "<where>: <what>" as Error(data).
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::data, "{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }
  // "<where>: type "X" is not supported; supported: ...".
  [[noreturn]] void refuse_type(std::string_view supported) const;

 private:
  Component(const nlohmann::json& value, std::string where, int depth);
  const nlohmann::json& get(const char* key, const char* wanted, bool (nlohmann::json::*is)() const noexcept) const;

  const nlohmann::json& value_;
  std::string where_;
  int depth_ = 0;
};

// The `pattern` of Replace and Split: {"String": literal text} or {"Regex": regular expression}.
class TextPattern {
 public:
  explicit TextPattern(const Component& owner);

  void find_all(std::string_view text, std::vector<Regex::Match>& matches) const;

  // The regular expression; empty for a literal.
  const std::string& regex_source() const { return regex_source_; }

 private:
  std::string literal_, regex_source_;
  std::optional<Regex> regex_;
};

}  // namespace hexad::text
