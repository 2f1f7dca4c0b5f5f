// JSON text, in and out. nlohmann's parser and printer are templates that cost a compiler seconds in every file that
// names them; they are instantiated in json.cpp alone.
// `J` is nlohmann::json or, where the order of keys is kept, nlohmann::ordered_json (inserting n keys there takes n²
// time).
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hexad {

// nlohmann copies and prints a value with a call a level: a stranger's text could end the stack.
constexpr size_t kDeepestJson = 500;

// Throws J::parse_error; its what() names line, column and what was expected.
template <typename J>
J parse_json(std::string_view text);

// `watch` sees every key and value while it is parsed, and refuses by throwing (limits on depth, repeated keys).
template <typename J>
J parse_json(std::string_view text, const typename J::parser_callback_t& watch);

// Text that is not JSON gives a value for which is_object(), is_array(), ... are all false.
template <typename J>
J try_parse_json(std::string_view text);

// The JSON of a file's text; Error(data) names the file when it is not JSON.
template <typename J>
J file_json(const std::string& text, const std::filesystem::path& file);

// The JSON in `file`; Error(data) names the file when it cannot be opened or is not JSON.
template <typename J>
J read_json(const std::filesystem::path& file);

// On one line, or indented by `indent` blanks. Bytes that are not UTF-8 become U+FFFD: printing never throws.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// The value with the texts "inf", "-inf" and "nan" for numbers that JSON has none for, which json_text makes null.
nlohmann::ordered_json with_named_infinities(nlohmann::ordered_json value);

// JSON that a stranger wrote: no key twice in an object, and at most `deepest` levels. Throws Error(plugin); `where`
// names the text.
nlohmann::ordered_json parse_bounded(std::string_view text, size_t deepest, const std::string& where);

// JSON of a data file, whose numbers stay as they were written: one that json_text would write otherwise (1.10, 1e5, an
// integer beyond 64 bits) becomes a binary value of its characters. No key stands twice in an object; at most
// kDeepestJson levels. Throws Error(data); `where` names the text.
nlohmann::ordered_json parse_data(std::string_view text, const std::string& where);
// What json_text writes on one line, of values that parse_data made too.
std::string data_text(const nlohmann::ordered_json& value);
// The same with numbers by value, 1.10 as 1.1: what json_text writes of a value that parse_json made of the text.
std::string value_text(const nlohmann::ordered_json& value);

}  // namespace hexad
