// Filters over sequences: order, grouping, single elements.
#include <algorithm>

#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

// What an item is compared by: an attribute of it, in lower case unless case matters.
Value sort_key(const Value& item, const Value& attribute, bool case_sensitive, Budget& budget) {
  Value key = attribute.is_none() ? item : get_path(item, attribute, budget);
  if (case_sensitive || !key.text()) return key;
  budget.allocate(3 * key.text()->bytes.size());
  return make_text(to_lower(key.text()->bytes), budget);
}

// sort(attribute="a,b") compares by several attributes.
Value sort_keys(const Value& item, const Value& attribute, bool case_sensitive, Budget& budget) {
  if (!attribute.text() || attribute.text()->bytes.find(',') == std::string::npos)
    return sort_key(item, attribute, case_sensitive, budget);
  std::vector<Value> keys;
  std::string_view rest = attribute.text()->bytes;
  for (;;) {
    const size_t comma = rest.find(',');
    keys.push_back(sort_key(item, make_text(std::string(rest.substr(0, comma)), budget), case_sensitive, budget));
    if (comma == std::string_view::npos) return make_list(std::move(keys), budget);
    rest.remove_prefix(comma + 1);
  }
}

using Keyed = std::vector<std::pair<Value, Value>>;

void sort_stably(Keyed& keyed, bool reverse, Budget& budget) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? order(b.first, a.first, "<", budget) < 0 : order(a.first, b.first, "<", budget) < 0;
  });
}

Keyed with_keys(const Value& input, const Value& attribute, bool case_sensitive, Budget& budget) {
  Keyed keyed;
  for (Value& item : to_vector(input, budget)) {
    Value key = sort_keys(item, attribute, case_sensitive, budget);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  return keyed;
}

Value sort(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  Keyed keyed = with_keys(input, bound.value(2), bound.flag(1, false), evaluator.budget);
  sort_stably(keyed, bound.flag(0, false), evaluator.budget);
  std::vector<Value> items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return make_list(std::move(items), evaluator.budget);
}

Value dictsort(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!input.dict()) fault("dictsort wants a mapping, not {}", type_name(input));
  const std::string by = bound.text(1, "key");
  if (by != "key" && by != "value") fault("You can only sort by either \"key\" or \"value\"");
  Keyed keyed;
  for (const auto& [key, value] : input.dict()->entries) {
    keyed.emplace_back(sort_key(by == "key" ? key : value, Value(), bound.flag(0, false), evaluator.budget),
                       make_sequence(SequenceKind::tuple, {key, value}, evaluator.budget));
  }
  sort_stably(keyed, bound.flag(2, false), evaluator.budget);
  std::vector<Value> items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return make_list(std::move(items), evaluator.budget);
}

Value groupby(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  Keyed keyed;
  std::vector<Value> shown;  // the attribute as it is, in the order of keyed after sorting
  for (Value& item : to_vector(input, evaluator.budget)) {
    Value attribute = get_path(item, bound.at(0), evaluator.budget);
    if (attribute.is_undefined() && bound.has(1)) attribute = bound.at(1);
    Value key = sort_key(attribute, Value(), bound.flag(2, false), evaluator.budget);
    keyed.emplace_back(std::move(key), make_sequence(SequenceKind::tuple, {attribute, item}, evaluator.budget));
  }
  sort_stably(keyed, false, evaluator.budget);
  std::vector<Value> groups;
  for (size_t i = 0; i < keyed.size();) {
    const size_t begin = i;
    std::vector<Value> members;
    for (; i < keyed.size() && equal(keyed[i].first, keyed[begin].first, evaluator.budget); ++i) {
      members.push_back(keyed[i].second.sequence()->items[1]);
    }
    if (i == begin) ++i;  // nan differs from itself
    const Value title = keyed[begin].second.sequence()->items[0];
    groups.push_back(
        make_sequence(SequenceKind::tuple, {title, make_list(std::move(members), evaluator.budget)}, evaluator.budget));
  }
  return make_list(std::move(groups), evaluator.budget);
}

Value unique(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  const auto seen = std::make_shared<Dict>();
  return make_generator(
      [seen, next = iterate(input, evaluator.budget), attribute = bound.value(1), exact = bound.flag(0, false),
       &evaluator](Value& out) {
        while (next(out)) {
          const Value key = sort_key(out, attribute, exact, evaluator.budget);
          if (seen->find(key, evaluator.budget)) continue;
          seen->set(key, true, evaluator.budget);
          return true;
        }
        return false;
      },
      input.depth(), evaluator.budget);
}

template <bool largest>
Value extreme(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const Keyed keyed = with_keys(input, bound.value(1), bound.flag(0, false), evaluator.budget);
  if (keyed.empty()) return make_undefined("No aggregated item, sequence was empty.");
  const auto* best = &keyed.front();
  for (const auto& candidate : keyed) {
    const int sign = order(candidate.first, best->first, largest ? ">" : "<", evaluator.budget);
    if (largest ? sign > 0 : sign < 0) best = &candidate;
  }
  return best->second;
}

Value first(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("first", arguments, {});
  Value item;
  return iterate(input, evaluator.budget)(item) ? item : make_undefined("No first item, sequence was empty.");
}

Value last(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("last", arguments, {});
  if (input.generator()) fault("'generator' object is not reversible");
  const std::vector<Value> items = to_vector(input, evaluator.budget);
  return items.empty() ? make_undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("reverse", arguments, {});
  std::vector<Value> items = to_vector(input, evaluator.budget);
  std::reverse(items.begin(), items.end());
  if (input.text()) {
    std::string text;
    for (const Value& item : items) text += item.text()->bytes;
    return make_text(std::move(text), evaluator.budget);
  }
  const Value reversed = make_list(std::move(items), evaluator.budget);
  if (input.generator()) return reversed;
  return make_generator(iterate(reversed, evaluator.budget), input.depth(), evaluator.budget);
}

Value list(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("list", arguments, {});
  return make_list(to_vector(input, evaluator.budget), evaluator.budget);
}

Value items(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("items", arguments, {});
  if (input.is_undefined()) return make_generator([](Value&) { return false; }, 1, evaluator.budget);
  if (!input.dict()) fault("Can only get item pairs from a mapping.");
  return make_generator(
      [input, index = size_t{0}, &evaluator](Value& out) mutable {
        const auto& entries = input.dict()->entries;
        if (index == entries.size()) return false;
        out = make_sequence(SequenceKind::tuple, {entries[index].first, entries[index].second}, evaluator.budget);
        ++index;
        return true;
      },
      input.depth(), evaluator.budget);
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable table = {{"dictsort", dictsort}, {"first", first},        {"groupby", groupby},
                                    {"items", items},       {"last", last},          {"list", list},
                                    {"max", extreme<true>}, {"min", extreme<false>}, {"reverse", reverse},
                                    {"sort", sort},         {"unique", unique}};
  return table;
}

}  // namespace hexad::text::jinja
