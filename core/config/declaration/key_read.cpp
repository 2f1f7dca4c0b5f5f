#include "core/config/declaration/key_read.hpp"

#include "core/config/load/defaults.hpp"
#include "core/config/rules/check_keys.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/scalar.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kMembers = {
    "type", "default",  "meaning",  "min",     "max",     "above", "choices",      "not_built",  "read_as",
    "open", "optional", "accepted", "refused", "allowed", "acts",  "renamed_from", "stands_for", "detail_of"};

std::optional<Kinds> kind_named(std::string_view word) {
  static const std::pair<std::string_view, Kinds> kinds[] = {{"bool", kBool}, {"int", kInt},   {"float", kFloat},
                                                             {"text", kText}, {"list", kList}, {"map", kMap},
                                                             {"null", kNull}, {"any", kAny}};
  for (const auto& [name, kind] : kinds) {
    if (name == word) return kind;
  }
  return std::nullopt;
}

// The members of one key, read with messages that name them.
class Members {
 public:
  Members(const std::string& path, const Json& members, const std::string& where)
      : path_(path), members_(members), where_(where) {
    if (!members.is_object()) refuse("", fmt::format("got {}, wanted a mapping with `type`", json_text(members)));
    for (const auto& [name, value] : members.get_ref<const Json::object_t&>()) {
      if (std::ranges::find(kMembers, name) == kMembers.end())
        refuse(name, fmt::format("no member of a key{}", did_you_mean(name, kMembers)));
    }
  }

  [[noreturn]] void refuse(std::string_view member, const std::string& what) const {
    fail(ErrorKind::plugin, "{}: keys.{}{}{}: {}", where_, path_, member.empty() ? "" : ": ", member, what);
  }
  const Json* find(std::string_view name) const {
    for (const auto& [each, value] : members_.get_ref<const Json::object_t&>()) {
      if (each == name) return &value;
    }
    return nullptr;
  }
  bool flag(std::string_view name) const {
    const Json* value = find(name);
    if (value && !value->is_boolean()) refuse(name, fmt::format("got {}, wanted true or false", json_text(*value)));
    return value && value->get<bool>();
  }
  std::string text(std::string_view name) const {
    const Json* value = find(name);
    if (value && !value->is_string()) refuse(name, fmt::format("got {}, wanted a text", json_text(*value)));
    return value ? value->get<std::string>() : "";
  }
  std::optional<double> number(std::string_view name) const {
    const Json* value = find(name);
    if (value && !value->is_number()) refuse(name, fmt::format("got {}, wanted a number", json_text(*value)));
    return value ? std::optional(value->get<double>()) : std::nullopt;
  }
  std::vector<std::string> texts(std::string_view name) const { return texts_of(find(name), name); }
  std::vector<std::string> texts_of(const Json* list, std::string_view name) const {
    std::vector<std::string> result;
    if (!list) return result;
    const bool fits = list->is_array() && std::ranges::all_of(*list, [](const Json& item) { return item.is_string(); });
    if (!fits) refuse(name, fmt::format("got {}, wanted a list of texts", json_text(*list)));
    return list->get<std::vector<std::string>>();
  }

 private:
  const std::string& path_;
  const Json& members_;
  const std::string& where_;
};

bool is_form(const Json& value) {
  if (!value.is_object()) return false;
  return value.contains("first_of") || value.contains("model") || value.contains("auto");
}

void read_default(const Members& members, Key& key) {
  const Json* value = members.find("default");
  if (!value) return;
  if (!is_form(*value)) {
    if (value->is_object() && !value->empty())
      members.refuse("default",
                     fmt::format("got {}, wanted a value, or one of first_of, model, auto", json_text(*value)));
    key.default_yaml = yaml_of(*value);
    return;
  }
  for (const auto& entry : value->items()) {
    const std::string& name = entry.key();
    const Json& said = entry.value();
    if (name == "first_of")
      key.first_of = members.texts_of(&said, "default");
    else if (name == "else")
      key.default_yaml = yaml_of(said);
    else if ((name == "model" || name == "auto") && said.is_string())
      (name == "model" ? key.model_member : key.automatic) = said.get<std::string>();
    else
      members.refuse("default", fmt::format("got {}, wanted first_of with else, model, or auto", json_text(*value)));
  }
  const int forms = !key.first_of.empty() + !key.model_member.empty() + !key.automatic.empty();
  if (forms != 1 || (!key.automatic.empty() && !key.default_yaml.empty()))
    members.refuse("default", fmt::format("got {}, wanted one of first_of, model, auto", json_text(*value)));
}

void read_bounds(const Members& members, Key& key) {
  const std::optional<double> low = members.number("min"), high = members.number("max"),
                              above = members.number("above");
  if (low && above) members.refuse("above", "min is there too: keep one");
  if (low) key.minimum = *low;
  if (high) key.maximum = *high;
  if (above) key.minimum = *above, key.minimum_excluded = true;
  if ((low || high || above) && !(key.kinds & (kInt | kFloat)) && !(key.element_kinds != kAny))
    members.refuse(low ? "min" : above ? "above" : "max", "is a bound of numbers, and the type has none");
}

void read_synonyms(const Members& members, Key& key) {
  const Json* said = members.find("read_as");
  if (!said) return;
  const bool fits = said->is_object() && said->size() == 3 && said->contains("text") && said->at("text").is_string() &&
                    said->contains("from") && said->contains("note") && said->at("note").is_string();
  if (!fits) members.refuse("read_as", fmt::format("got {}, wanted {{text, from, note}}", json_text(*said)));
  key.synonym_of = said->at("text").get<std::string>();
  key.synonyms = members.texts_of(&said->at("from"), "read_as");
  key.synonym_note = said->at("note").get<std::string>();
}

// What becomes of the key: its own word, or that of the section it stands in.
void read_status(const Members& members, const Key* section, Key& key) {
  const bool accepted = members.find("accepted"), refused = members.find("refused"), acts = members.flag("acts");
  key.detail_of = members.text("detail_of");
  if (accepted + refused + acts + !key.detail_of.empty() > 1)
    members.refuse("", "accepted, refused, acts and detail_of exclude each other: keep one");
  if (!key.detail_of.empty()) key.status = Status::dormant;
  if (section && section->status != Status::effective && !acts)
    key.status = section->status == Status::unavailable ? Status::dormant : section->status;
  if (accepted) key.status = Status::accepted, key.note = members.text("accepted");
  if (!refused) return;
  key.status = Status::unavailable, key.note = members.text("refused");
  if (const Json* off = members.find("allowed")) {
    if (!off->is_array()) members.refuse("allowed", fmt::format("got {}, wanted a list of values", json_text(*off)));
    for (const Json& value : *off) key.off.push_back(yaml_of(value));
  } else if (!(key.kinds & kMap)) {
    key.off = {"false", "null"};
  }
}

// A default that the key itself would refuse.
void check_default(const Members& members, const Key& key) {
  if (key.default_yaml.empty() || key.default_yaml.find("${") != std::string::npos) return;
  if (const auto problem = value_problem(key, default_value(key.default_yaml), true))
    members.refuse("default", *problem);
}

}  // namespace

std::optional<TypeText> parse_type(std::string_view text) {
  TypeText type;
  unsigned kinds = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(" or ", begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    const size_t of = word.find(" of ");
    const std::optional<Kinds> kind = kind_named(word.substr(0, of));
    if (!kind) return std::nullopt;
    kinds |= *kind;
    if (of != word.npos) {
      const std::optional<Kinds> inner = kind_named(word.substr(of + 4));
      if (!inner || (*kind != kList && *kind != kMap)) return std::nullopt;
      if (*kind == kList)
        type.element_kinds = *inner;
      else
        type.value_kinds = *inner, type.open = true;
    }
    begin = end + 4;
    if (end == text.size()) break;
  }
  type.kinds = static_cast<Kinds>(kinds);
  return type;
}

Key read_key(const std::string& path, const Json& json, const Key* section, const std::string& where) {
  const Members members(path, json, where);
  Key key;
  key.path = path;
  const std::string type = members.find("type") ? members.text("type") : "any";
  const std::optional<TypeText> kinds = parse_type(type);
  if (!kinds)
    members.refuse("type", fmt::format("got '{}', wanted bool, int, float, text, list, map, null or any, joined by "
                                       "` or `; `list of int`, `map of text`",
                                       type));
  key.kinds = kinds->kinds, key.element_kinds = kinds->element_kinds, key.value_kinds = kinds->value_kinds;
  key.open = kinds->open || members.flag("open");
  if (key.open && !(key.kinds & kMap)) members.refuse("open", fmt::format("needs type map, got '{}'", type));
  key.optional = members.flag("optional");
  key.meaning = members.text("meaning");
  key.choices = members.texts("choices");
  key.not_built = members.texts("not_built");
  key.renamed_from = members.texts("renamed_from");
  key.stands_for = members.text("stands_for");
  read_default(members, key);
  read_bounds(members, key);
  read_synonyms(members, key);
  read_status(members, section, key);
  check_default(members, key);
  return key;
}

std::string yaml_of(const Json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (text.starts_with("${") && text.ends_with("}")) return text;
    const bool word = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
      return std::isalnum(c) || c == '_' || c == '.' || c == '-' || c == '/' || c == '+';
    });
    return word && std::holds_alternative<std::string>(yaml::plain_scalar(text)) ? text : json_text(value);
  }
  return json_text(value);
}

}  // namespace hexad::config
