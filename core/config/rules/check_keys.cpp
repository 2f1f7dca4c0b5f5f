#include "core/config/rules/check_keys.hpp"

#include "core/config/load/defaults.hpp"
#include "core/config/meant_key.hpp"

namespace hexad::config {
namespace {

std::string join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

// False, null, or nothing but those in it: it asks for nothing.
bool asks_for_nothing(const yaml::Node& value) {
  if (value.is_bool()) return !value.as_bool();
  if (value.is_list()) return value.items().empty();
  if (value.is_map()) {
    return std::ranges::all_of(value.entries(), [](const auto& entry) { return asks_for_nothing(entry.second); });
  }
  return value.is_null();
}

// True for the key's default, be it written out or a reference to another key.
bool is_default(const Key& key, const yaml::Node& value, const yaml::Node& root) {
  const std::string& text = key.default_yaml;
  if (!text.starts_with("${")) return same_value(default_value(text), value);
  const yaml::Node* other = root.find(text.substr(2, text.size() - 3));
  return other && same_value(*other, value);
}

class Walk {
 public:
  Walk(const Schema& schema, const std::vector<std::string>& dormant, const std::string& advice)
      : schema_(schema), dormant_(dormant), advice_(advice) {}

  std::vector<Problem> run(const yaml::Node& root) {
    root_ = &root;
    walk_map(root, "", "");
    return std::move(problems_);
  }

 private:
  void add(Problem::Severity severity, const yaml::Node& node, const std::string& path, std::string message) {
    problems_.push_back({severity, node.location(), path, std::move(message)});
  }

  // `path` is where the map stands, `pattern` the same without list indexes.
  void walk_map(const yaml::Node& map, const std::string& path, const std::string& pattern) {
    for (const auto& [name, value] : map.entries()) {
      const std::string full = join(path, name), key_path = join(pattern, name);
      const Key* key = name.find('.') == std::string::npos ? schema_.find(key_path) : nullptr;
      if (key) {
        check(*key, value, full, key_path);
      } else if (!schema_.is_free(key_path)) {
        unknown(name, value, full);
      }
    }
  }

  // Of a map whose keys are free: those that are declared all the same, and the kinds of the values of the others.
  void walk_known(const Key& key, const yaml::Node& map, const std::string& path, const std::string& pattern) {
    if (!map.is_map() || (key.value_kinds == kAny && schema_.children(pattern).empty())) return;
    for (const auto& [name, value] : map.entries()) {
      const std::string full = join(path, name), key_path = join(pattern, name);
      const Key* known = name.find('.') == std::string::npos ? schema_.find(key_path) : nullptr;
      if (known && known->path == key_path) {
        check(*known, value, full, key_path);
      } else if (!is_kind(value, key.value_kinds)) {
        add(Problem::Severity::error, value, full,
            fmt::format("got {}, wanted {}", value.describe(), kinds_text(key.value_kinds)));
      }
    }
  }

  void unknown(const std::string& name, const yaml::Node& value, const std::string& path) {
    if (name.find('.') != std::string::npos) {
      return add(Problem::Severity::error, value, path,
                 "unknown key; a key with dots in it is written as nested mappings");
    }
    if (name == "_override_") {
      return add(Problem::Severity::notice, value, path, "has no effect: it is read in a top-level section alone");
    }
    if (value.is_map() && !value.entries().empty() && schema_.other_name(path + "."))
      return walk_map(value, path, path);  // a section of another system's: each of its keys has an answer
    const std::string hint = meant_key(path, *root_, &schema_).hint;
    add(Problem::Severity::error, value, path, "unknown key; " + (hint.empty() ? advice_ : hint));
  }

  bool asks_for_something(const Key& key, const yaml::Node& value) const {
    if (key.default_yaml.empty() || value.is_null() || value.is_container()) return !asks_for_nothing(value);
    return !is_default(key, value, *root_);
  }

  void check(const Key& key, const yaml::Node& value, const std::string& path, const std::string& pattern) {
    const bool dormant =
        std::ranges::any_of(dormant_, [&](const std::string& section) { return pattern.starts_with(section + "."); });
    if (const std::optional<std::string> problem = value_problem(key, value, dormant)) {
      return add(Problem::Severity::error, value, path, *problem);
    }
    if (key.status == Status::accepted && !key.note.empty() && !dormant && asks_for_something(key, value)) {
      add(Problem::Severity::notice, value, path, key.note);
    }
    if (key.open) return walk_known(key, value, path, pattern);
    if (value.is_map()) walk_map(value, path, pattern);
    if (!value.is_list()) return;
    for (size_t i = 0; i < value.items().size(); ++i) {
      const yaml::Node& item = value.items()[i];
      if (item.is_map()) walk_map(item, fmt::format("{}.{}", path, i), pattern);
    }
  }

  std::vector<Problem> problems_;
  const yaml::Node* root_ = nullptr;
  const Schema& schema_;
  const std::vector<std::string>& dormant_;
  const std::string& advice_;
};

}  // namespace

std::vector<Problem> check_keys(const yaml::Node& root, const Schema& schema, const std::vector<std::string>& dormant,
                                const std::string& advice) {
  return Walk(schema, dormant, advice).run(root);
}

}  // namespace hexad::config
