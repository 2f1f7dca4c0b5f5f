// The filters, tests, functions and methods that templates can call.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/text/template/value/value.hpp"

namespace hexad::text::jinja {

using Filter = Value (*)(Evaluator&, const Value& input, Arguments&);
using Test = bool (*)(Evaluator&, const Value& input, Arguments&);
using FilterTable = std::map<std::string_view, Filter, std::less<>>;

const FilterTable& text_filters();
const FilterTable& number_filters();
const FilterTable& sequence_filters();
const FilterTable& selection_filters();

bool is_filter_name(std::string_view name);
bool is_test_name(std::string_view name);
std::string unknown_filter(std::string_view name);  // the message, with the nearest known name
std::string unknown_test(std::string_view name);

Value apply_filter(Evaluator& evaluator, std::string_view name, const Value& input, Arguments& arguments);
bool apply_test(Evaluator& evaluator, std::string_view name, const Value& input, Arguments& arguments);

// range, namespace, dict, raise_exception, strftime_now, joiner; nullptr for another name.
const Value* find_global(std::string_view name);

// value.name and value['name'] for methods; nullopt when values of this type have no such method. A method that would
// change its value, or reaches into the interpreter, gives an undefined value that says so when it is called.
std::optional<Value> find_method(const Value& value, std::string_view name, Budget& budget);
// The method `name` of texts, called; `name` is one of text_method_names().
Value call_text_method(Evaluator& evaluator, const Value& self, std::string_view name, Arguments& arguments);
bool is_text_method(std::string_view name);

// object.name and object[index] as Jinja's sandbox resolves them.
Value get_attribute(const Value& object, std::string_view name, Budget& budget);
Value get_item(const Value& object, const Value& index, Budget& budget);
Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step, Budget& budget);
// "a.b.0" of an item, as the `attribute` argument of filters names it.
Value get_path(const Value& item, const Value& path, Budget& budget);

// The `%` operator on text.
Value format_percent(const Value& format, const Value& values, Budget& budget);
// left op right for + - * / // % **
Value arithmetic(std::string_view op, const Value& left, const Value& right, Budget& budget);
// left op right for == != < <= > >= in, not in
bool compare(std::string_view op, const Value& left, const Value& right, Budget& budget);

// Escapes &, <, >, ' and " unless the value is marked safe; the result is marked safe.
Value escape_html(const Value& value, Budget& budget);

}  // namespace hexad::text::jinja
