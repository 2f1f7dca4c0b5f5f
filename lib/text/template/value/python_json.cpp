#include <algorithm>
#include <cmath>

#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  std::string print(const Value& value) {
    append(value, 0);
    return std::move(out_);
  }

 private:
  void append(const Value& value, int level) {
    const Budget::Level nesting(budget_);
    const size_t before = out_.size();
    if (value.is_none()) {
      out_ += "null";
    } else if (value.is<bool>()) {
      out_ += value.integer() ? "true" : "false";
    } else if (value.is_number()) {
      out_ += number(value);
    } else if (const Text* text = value.text()) {
      append_string(text->bytes);
    } else if (value.is_sequence(SequenceKind::list) || value.is_sequence(SequenceKind::tuple)) {
      append_list(value.sequence()->items, level);
      return;
    } else if (const Dict* dict = value.dict()) {
      append_dict(*dict, level);
      return;
    } else {
      fault("Object of type {} is not JSON serializable", type_name(value));
    }
    budget_.allocate(out_.size() - before);
  }

  static std::string number(const Value& value) {
    if (value.is_integer()) return integer_text(value.integer());
    if (std::isnan(value.real())) return "NaN";
    if (std::isinf(value.real())) return value.real() < 0 ? "-Infinity" : "Infinity";
    return real_text(value.real());
  }

  void append_string(std::string_view text) {
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const uint32_t code = next_code_point(text, i);
      switch (code) {
        case '"': out_ += "\\\""; continue;
        case '\\': out_ += "\\\\"; continue;
        case '\n': out_ += "\\n"; continue;
        case '\r': out_ += "\\r"; continue;
        case '\t': out_ += "\\t"; continue;
        case '\f': out_ += "\\f"; continue;
        case '\b': out_ += "\\b"; continue;
        default: break;
      }
      if (code < 0x20 || (style_.ensure_ascii && code >= 0x7f && code < 0x10000 && code != 0x7f)) {
        out_ += fmt::format("\\u{:04x}", code);
      } else if (style_.ensure_ascii && code >= 0x10000) {
        out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
      } else {
        append_code_point(out_, code);
      }
    }
    out_ += '"';
  }

  void new_line(int level) {
    if (!style_.indent) return;
    budget_.allocate(style_.indent->size() * level + 1);
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  void append_list(const std::vector<Value>& items, int level) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(level + 1);
      append(items[i], level + 1);
    }
    if (!items.empty()) new_line(level);
    out_ += ']';
    budget_.allocate(2 + items.size() * style_.item_separator.size());
  }

  void append_dict(const Dict& dict, int level) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [this](auto* a, auto* b) { return order(a->first, b->first, "<", budget_) < 0; });
    }
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(level + 1);
      append_string(key_text(entries[i]->first));
      out_ += style_.key_separator;
      append(entries[i]->second, level + 1);
    }
    if (!entries.empty()) new_line(level);
    out_ += '}';
    budget_.allocate(2 + entries.size() * (style_.item_separator.size() + style_.key_separator.size()));
  }

  std::string key_text(const Value& key) {
    if (const Text* text = key.text()) {
      budget_.allocate(text->bytes.size());
      return text->bytes;
    }
    if (key.is_none()) return "null";
    if (key.is<bool>()) return key.integer() ? "true" : "false";
    if (key.is_number()) return number(key);
    fault("keys must be str, int, float, bool or None, not {}", type_name(key));
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::string out_;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  return JsonPrinter(style, budget).print(value);
}

}  // namespace hexad::text::jinja
