// Filters that give text.
#include <algorithm>

#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/text_split.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

// The filters take any value and work on its text; an undefined one is empty.
std::string soft_str(Evaluator& evaluator, const Value& input) {
  std::string text = str(input, evaluator.budget);
  evaluator.budget.allocate(3 * text.size());
  return text;
}

template <std::string (*convert)(std::string_view)>
Value convert_case(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("filter", arguments, {});
  return make_text(convert(soft_str(evaluator, input)), evaluator.budget);
}

// Jinja's own rule: words begin after a space or one of - ( { [ <.
std::string title_words(std::string_view text) {
  std::string out;
  bool word_start = true;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t code = next_code_point(text, i);
    const std::string_view one = text.substr(begin, i - begin);
    const bool separator = is_space(code) || (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) !=
                                                                 std::string_view::npos);
    out += separator ? std::string(one) : word_start ? to_upper(one) : to_lower(one);
    word_start = separator;
  }
  return out;
}

Value trim(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"});
  const std::string text = soft_str(evaluator, input);
  const bool any_space = !bound.has(0) || bound.at(0).is_none();
  const std::string_view kept =
      any_space ? strip(text, true, true) : strip_characters(text, bound.text(0, ""), true, true);
  return make_text(std::string(kept), evaluator.budget, input.text() && input.text()->safe);
}

Value replace_filter(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const std::string old = str(bound.at(0), evaluator.budget), with = str(bound.at(1), evaluator.budget);
  const int64_t count = bound.value(2).is_none() ? -1 : bound.integer(2, -1);
  return make_text(replace(soft_str(evaluator, input), old, with, count, evaluator.budget), evaluator.budget);
}

Value indent(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  if (!input.text()) fault("indent wants a str, not {}", type_name(input));
  const bool is_text = bound.has(0) && bound.at(0).text();
  const int64_t width = is_text ? 0 : std::clamp<int64_t>(bound.integer(0, 4), 0, 10'000);
  const std::string indentation = is_text ? bound.text(0, "") : std::string(static_cast<size_t>(width), ' ');
  const std::string text = soft_str(evaluator, input) + "\n";  // a last newline makes a last empty line
  std::string out = bound.flag(1, false) ? indentation : "";
  bool first = true;
  for (std::string_view line : split_lines(text, false)) {
    evaluator.budget.allocate(line.size() + indentation.size() + 1);
    if (!first) out += '\n';
    if (!first && (bound.flag(2, false) || !line.empty())) out += indentation;
    out += line;
    first = false;
  }
  return make_text(std::move(out), evaluator.budget);
}

Value join(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const std::string separator = bound.has(0) ? str(bound.at(0), evaluator.budget) : "";
  std::string out;
  bool first = true;
  const Iterator next = iterate(input, evaluator.budget);
  for (Value item; next(item); first = false) {
    if (bound.has(1) && !bound.at(1).is_none()) item = get_path(item, bound.at(1), evaluator.budget);
    const std::string piece = str(item, evaluator.budget);
    evaluator.budget.allocate(separator.size() + piece.size());
    if (!first) out += separator;
    out += piece;
  }
  return make_text(std::move(out), evaluator.budget);
}

// json.dumps with transformers' defaults: non-ASCII stays, nothing is escaped for HTML.
Value tojson(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.flag(0, false);
  style.sort_keys = bound.flag(3, false);
  if (const Value width = bound.value(1); width.text()) {
    style.indent = width.text()->bytes;
  } else if (!width.is_none()) {
    style.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(bound.integer(1, 0), 0, 1000)), ' ');
  }
  style.item_separator = style.indent ? "," : ", ";
  style.key_separator = ": ";
  if (const Value separators = bound.value(2); !separators.is_none()) {
    const Sequence* pair = separators.sequence();
    if (!pair || pair->items.size() != 2 || !pair->items[0].text() || !pair->items[1].text())
      fault("tojson(): separators must be two texts");
    style.item_separator = pair->items[0].text()->bytes;
    style.key_separator = pair->items[1].text()->bytes;
  }
  return make_text(to_json(input, style, evaluator.budget), evaluator.budget);
}

Value string(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("string", arguments, {});
  return input.text() ? input : make_text(soft_str(evaluator, input), evaluator.budget);
}

Value escape(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("escape", arguments, {});
  return escape_html(input, evaluator.budget);
}

Value force_escape(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("forceescape", arguments, {});
  return escape_html(make_text(soft_str(evaluator, input), evaluator.budget), evaluator.budget);
}

Value safe(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("safe", arguments, {});
  return make_text(soft_str(evaluator, input), evaluator.budget, true);
}

Value format(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fault("can't handle positional and keyword arguments at the same time");
  const Value text = make_text(soft_str(evaluator, input), evaluator.budget);
  if (arguments.named.empty()) {
    return format_percent(text, make_sequence(SequenceKind::tuple, arguments.positional, evaluator.budget),
                          evaluator.budget);
  }
  Dict named;
  for (const auto& [name, value] : arguments.named)
    named.set(make_text(name, evaluator.budget), value, evaluator.budget);
  return format_percent(text, make_dict(std::move(named), evaluator.budget), evaluator.budget);
}

Value center(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("center", arguments, {"width"});
  Arguments width{{Value(bound.integer(0, 80))}, {}};
  return call_text_method(evaluator, make_text(soft_str(evaluator, input), evaluator.budget), "center", width);
}

// Runs of letters, digits and underscores.
Value wordcount(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("wordcount", arguments, {});
  const std::string text = soft_str(evaluator, input);
  int64_t count = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const bool word = next_code_point(text, i) == '_' || is_alnum(std::string_view(text).substr(begin, i - begin));
    count += word && !inside;
    inside = word;
  }
  return count;
}

}  // namespace

Value escape_html(const Value& value, Budget& budget) {
  if (value.text() && value.text()->safe) return value;
  const std::string text = str(value, budget);
  budget.allocate(5 * text.size());
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return make_text(std::move(out), budget, true);
}

const FilterTable& text_filters() {
  static const FilterTable table = {{"capitalize", convert_case<capitalize>},
                                    {"center", center},
                                    {"e", escape},
                                    {"escape", escape},
                                    {"forceescape", force_escape},
                                    {"format", format},
                                    {"indent", indent},
                                    {"join", join},
                                    {"lower", convert_case<to_lower>},
                                    {"replace", replace_filter},
                                    {"safe", safe},
                                    {"string", string},
                                    {"title", convert_case<title_words>},
                                    {"tojson", tojson},
                                    {"trim", trim},
                                    {"upper", convert_case<to_upper>},
                                    {"wordcount", wordcount}};
  return table;
}

}  // namespace hexad::text::jinja
