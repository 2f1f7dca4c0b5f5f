#include "core/config/load/load.hpp"

#include <charconv>

#include "core/config/meant_key.hpp"
#include "lib/base/error.hpp"
#include "lib/base/utf8.hpp"
#include "lib/yaml/interpolation.hpp"
#include "lib/yaml/merge.hpp"

namespace hexad::config {
namespace {

using Path = std::vector<std::string>;

Path split(const std::string& key) {
  Path path(1);
  for (const char c : key) {
    if (c == '.') {
      path.emplace_back();
    } else {
      path.back() += c;
    }
  }
  return path;
}

[[noreturn]] void refuse(const yaml::Override& override, const std::string& what) {
  fail(ErrorKind::config, "override '{}': {}", shortened(override.text, 200), what);
}

// The entry under a key or index, interpolations unresolved; null if there is none.
yaml::Node* entry(yaml::Node& node, const std::string& key) {
  return key.find('.') == std::string::npos ? node.find(key) : nullptr;
}

// The position a dotted path leads to through interpolations; empty if there is none.
yaml::Evaluator::Chain select(const yaml::Node& root, const std::string& path) {
  return yaml::Evaluator(root).select({&root}, path, yaml::Evaluator::BelowScalar::absent);
}

// The value there, evaluated; nothing for a missing key, null and "???".
std::optional<yaml::Node> selected(const yaml::Node& root, const std::string& path) {
  const yaml::Evaluator::Chain chain = select(root, path);
  if (chain.empty()) return std::nullopt;
  yaml::Node value = yaml::Evaluator(root).evaluate(chain);
  if (value.is_null() || (value.is_string() && value.as_string() == "???")) return std::nullopt;
  return value;
}

[[noreturn]] void no_such_key(const yaml::Node& root, const yaml::Override& override, const Schema* schema) {
  const MeantKey meant = meant_key(override.key, root, schema);
  if (!meant.list.empty()) {
    const size_t size = root.find(meant.list)->items().size();
    const std::string rest = override.key.substr(meant.list.size() + 1), word = rest.substr(0, rest.find('.'));
    const bool index = yaml::list_index(word).has_value();
    const std::string first = index || size == 0 ? "" : fmt::format("write {}.0.{}=..., or ", meant.list, rest);
    refuse(override,
           fmt::format("{0} is a list of {1} here{2}; {3}replace it: '{0}={4}'", meant.list, size,
                       index ? fmt::format(", which has no element {}", word) : "", first, index ? "[...]" : "{...}"));
  }
  // Nothing that the schema does not take can be added either.
  const std::string otherwise =
      schema ? "`docs/config.md` lists all keys" : fmt::format("write +{}=... to add one", override.key);
  refuse(override, fmt::format("there is no key {}; {}", meant.missing, meant.hint.empty() ? otherwise : meant.hint));
}

// The container that holds the last key of the path. With `create`, maps are made on the way, in place of scalars too;
// otherwise null if there is no such container.
yaml::Node* holder(yaml::Node& root, const Path& path, bool create) {
  yaml::Node* node = &root;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    yaml::Node* next = entry(*node, path[i]);
    if (!next || !next->is_container()) {
      if (!create) return nullptr;
      if (!next) {
        if (!node->is_map()) return nullptr;
        next = &node->entries().emplace_back(path[i], yaml::Node(yaml::Node::Map{}, node->location())).second;
      } else {
        *next = yaml::Node(yaml::Node::Map{}, next->location());
      }
    }
    node = next;
  }
  return node;
}

void set(yaml::Node& root, const yaml::Override& override, bool create, const Schema* schema) {
  const Path path = split(override.key);
  yaml::Node* parent = holder(root, path, create);
  if (!parent) no_such_key(root, override, schema);
  yaml::Node* old = entry(*parent, path.back());
  const yaml::Node& value = *override.value;
  if (!old) {
    if (!create || !parent->is_map()) no_such_key(root, override, schema);
    parent->entries().emplace_back(path.back(), value);
    return;
  }
  if (!old->is_container() || !value.is_container() || (old->is_list() && value.is_list())) {
    *old = value;
    return;
  }
  if (old->is_map() != value.is_map()) {
    refuse(override, fmt::format("cannot merge {} with {}; remove the key first (~{})", value.describe(),
                                 old->describe(), override.key));
  }
  try {
    merge(root, path, value, create ? yaml::NewKeys::allowed : yaml::NewKeys::refused);
  } catch (const Error& error) {
    refuse(override,
           fmt::format("{}{}", error.what(), schema ? "" : fmt::format("; write +{}=... to add keys", override.key)));
  }
}

// Python's ==: 1 equals 1.0 and True.
bool python_equal(const yaml::Node& a, const yaml::Node& b) {
  const auto number = [](const yaml::Node& n) {
    return n.is_bool() ? static_cast<double>(n.as_bool()) : n.as_double();
  };
  const auto numeric = [](const yaml::Node& n) { return n.is_number() || n.is_bool(); };
  if (numeric(a) && numeric(b)) return number(a) == number(b);
  if (a.is_list() && b.is_list()) return std::ranges::equal(a.items(), b.items(), python_equal);
  if (a.is_map() && b.is_map()) {
    return a.entries().size() == b.entries().size() && std::ranges::all_of(a.entries(), [&](const auto& entry) {
             const yaml::Node* other = b.child(entry.first);
             return other && python_equal(entry.second, *other);
           });
  }
  return same_value(a, b);
}

void remove(yaml::Node& root, const yaml::Override& override) {
  const std::optional<yaml::Node> old = selected(root, override.key);
  if (!old) refuse(override, fmt::format("cannot delete {}: it does not exist or is null", override.key));
  if (override.value && !override.value->is_null() && !python_equal(*override.value, *old)) {
    refuse(override, fmt::format("cannot delete {}: it is {} and not {}", override.key, old->describe(),
                                 override.value->describe()));
  }
  const size_t dot = override.key.rfind('.');
  const std::string last = dot == std::string::npos ? override.key : override.key.substr(dot + 1);
  const yaml::Evaluator::Chain parent =
      dot == std::string::npos ? yaml::Evaluator::Chain{&root}
                               : yaml::Evaluator(root).dereference(select(root, override.key.substr(0, dot)));
  yaml::Node* map = parent.empty() ? nullptr : const_cast<yaml::Node*>(parent.back());
  if (!map || !map->is_map()) refuse(override, "elements of a list cannot be deleted; set the whole list");
  std::erase_if(map->entries(), [&](const auto& entry) { return entry.first == last; });
}

}  // namespace

void apply_override(yaml::Node& root, const yaml::Override& override, const Schema* schema) {
  using Kind = yaml::Override::Kind;
  if (override.kind == Kind::remove) return remove(root, override);
  if (override.kind == Kind::add && !override.value->is_container() && selected(root, override.key)) {
    refuse(override, fmt::format("{0} exists; write {0}=... to change it or ++{0}=... for either", override.key));
  }
  const bool create = override.kind != Kind::change || (schema && takes(*schema, override.key));
  set(root, override, create, schema);
}

}  // namespace hexad::config
