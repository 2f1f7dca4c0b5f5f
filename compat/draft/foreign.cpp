#include "compat/draft/foreign.hpp"

#include <algorithm>
#include <cmath>

#include "lib/base/error.hpp"
#include "lib/yaml/file.hpp"
#include "lib/yaml/interpolation.hpp"
#include "lib/yaml/merge.hpp"
#include "lib/yaml/scalar.hpp"

namespace hexad::compat {
namespace {

std::string join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

bool is_same(const yaml::Node& a, const yaml::Node& b) {
  if (a.is_number() && b.is_number()) return a.as_double() == b.as_double();
  return same_value(a, b);
}

bool asks_for_nothing(const yaml::Node& value) {
  if (value.is_bool()) return !value.as_bool();
  if (value.is_string()) return value.as_string().empty();
  if (value.is_list()) return value.items().empty();
  if (value.is_map()) return value.entries().empty();
  return value.is_null();
}

// A text that is a number otherwise, as Python's own YAML reader leaves `1e-6`.
yaml::Node as_written(const yaml::Node& node) {
  if (!node.is_string()) return node;
  const std::string& text = node.as_string();
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != text.npos) return node;
  yaml::Node::Value value = yaml::plain_scalar(text);
  const bool number = std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value);
  return number ? yaml::Node(std::move(value), node.location()) : node;
}

}  // namespace

Foreign::Foreign(yaml::Node given, const std::string& defaults)
    : defaults_(yaml::read_text(defaults, "default")), given_(std::move(given)), all_(defaults_) {
  yaml::merge(all_, {}, given_);
  all_.set_location(given_.location());
  yaml::resolve_interpolations(all_);
}

const yaml::Node* Foreign::find(const std::string& key) {
  read_.insert(key);
  const yaml::Node* node = all_.find(key);
  return node && !node->is_null() && !node->is_missing() ? node : nullptr;
}

void Foreign::refuse(const std::string& key, const std::string& message) const {
  const std::string place = all_.nearest(key).location().text();
  fail(ErrorKind::config, "{}{}: {}", place.empty() ? "" : place + ": ", key, message);
}

bool Foreign::flag(const std::string& key) {
  const yaml::Node* node = find(key);
  if (node && !node->is_bool()) refuse(key, fmt::format("got {}, wanted true or false", node->describe()));
  return node && node->as_bool();
}

std::optional<double> Foreign::number(const std::string& key) {
  const yaml::Node* node = find(key);
  if (!node) return std::nullopt;
  const yaml::Node value = as_written(*node);
  if (!value.is_number() || !std::isfinite(value.as_double()))
    refuse(key, fmt::format("got {}, wanted a number", node->describe()));
  return value.as_double();
}

std::optional<int64_t> Foreign::integer(const std::string& key) {
  const std::optional<double> value = number(key);
  if (!value) return std::nullopt;
  constexpr double kMost = 9e15;  // of those that a double holds exactly
  if (!(*value >= -kMost && *value <= kMost) || static_cast<double>(static_cast<int64_t>(*value)) != *value)
    refuse(key, fmt::format("got {}, wanted an integer", all_.find(key)->describe()));
  return static_cast<int64_t>(*value);
}

std::string Foreign::wanted_text(const std::string& key) {
  const std::optional<std::string> value = text(key);
  if (!value) refuse(key, "is missing, wanted text");
  return *value;
}

int64_t Foreign::count(const std::string& key, int64_t least) {
  const std::optional<int64_t> value = integer(key);
  if (!value) refuse(key, fmt::format("is missing, wanted an integer of at least {}", least));
  if (*value < least) refuse(key, fmt::format("got {}, wanted at least {}", *value, least));
  constexpr int64_t kMost = int64_t{1} << 31;  // three of them multiply without overflow where one is a group size
  if (*value > kMost) refuse(key, fmt::format("got {}, wanted at most {}", *value, kMost));
  return *value;
}

std::optional<std::string> Foreign::text(const std::string& key) {
  const yaml::Node* node = find(key);
  if (!node) return std::nullopt;
  if (node->is_bool() && !node->as_bool()) return "no";
  if (!node->is_string()) refuse(key, fmt::format("got {}, wanted text", node->describe()));
  return node->as_string();
}

std::vector<std::string> Foreign::texts(const std::string& key) {
  const yaml::Node* node = find(key);
  if (!node) return {};
  if (!node->is_list()) return {*text(key)};
  std::vector<std::string> result;
  for (const yaml::Node& item : node->items()) {
    if (!item.is_string()) refuse(key, fmt::format("got {} in the list, wanted texts", item.describe()));
    result.push_back(item.as_string());
  }
  return result;
}

const yaml::Node* Foreign::value(const std::string& key) { return find(key); }

const yaml::Node* Foreign::given(const std::string& key) {
  read_.insert(key);
  const yaml::Node* node = given_.find(key);
  if (!node || node->is_null() || node->is_missing()) return nullptr;
  return all_.find(key);
}

void Foreign::add_unread(const yaml::Node& map, const std::string& path, std::span<const std::string_view> quiet,
                         std::vector<std::string>& out) const {
  for (const auto& [name, written] : map.entries()) {
    const std::string key = join(path, name);
    if (read_.contains(key) || name == "_target_" || std::ranges::find(quiet, key) != quiet.end()) continue;
    const yaml::Node* node = all_.find(key);
    const yaml::Node& value = node ? *node : written;
    const yaml::Node* standard = defaults_.find(key);
    if (value.is_map() && !value.entries().empty() && written.is_map()) {
      add_unread(written, key, quiet, out);
    } else if (!asks_for_nothing(value) && !value.is_missing() && !(standard && is_same(*standard, value))) {
      out.push_back(key);
    }
  }
}

std::vector<std::string> Foreign::unread(std::span<const std::string_view> quiet) const {
  std::vector<std::string> result;
  add_unread(given_, "", quiet, result);
  return result;
}

yaml::Node read_foreign(const std::string& path, const std::vector<std::string>& overrides) {
  yaml::Node file = yaml::read_file(path);
  for (const std::string& text : overrides) {
    const yaml::Override parsed = yaml::parse_override(text);
    file.set(parsed.key, parsed.value ? *parsed.value : yaml::Node());
  }
  return file;
}

std::string why_left_out(std::span<const config::OtherName> names, const std::string& key) {
  config::Schema schema;
  schema.know(names);
  const config::OtherName* other = schema.other_name(key);
  if (!other) return "no such setting is known of that system, or it has no counterpart here";
  if (other->key.empty()) return std::string(other->note);
  return fmt::format("here {}{}; its value is not translated", other->key,
                     other->note.empty() ? "" : fmt::format(" ({})", other->note));
}

}  // namespace hexad::compat
