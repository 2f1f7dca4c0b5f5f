#include "compat/roll/pass.hpp"

#include "core/config/rules/check_keys.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config::roll {

Part::Part(const yaml::Node& node, const Schema& schema, std::string prefix)
    : node_(node), schema_(schema), prefix_(std::move(prefix)), context_(node, schema) {}

const yaml::Node* Part::value(const std::string& path) {
  read_.insert(path);
  return context_.value(path);
}
bool Part::flag(const std::string& path) { return read_.insert(path), context_.flag(path); }
std::optional<int64_t> Part::integer(const std::string& path) { return read_.insert(path), context_.integer(path); }
std::optional<double> Part::number(const std::string& path) { return read_.insert(path), context_.number(path); }
std::optional<std::string> Part::text(const std::string& path) { return read_.insert(path), context_.text(path); }

const yaml::Node* Part::given(const std::string& path) {
  read_.insert(path);
  return section(path);
}

const yaml::Node* Part::section(const std::string& path) const {
  const yaml::Node* found = node_.find(path);
  return found && !found->is_null() ? found : nullptr;
}

yaml::Location Part::location(const std::string& path) const {
  if (const yaml::Node* found = node_.find(path)) return found->location();
  return {"ROLL's default of " + prefix_ + path, 0, 0};
}

void Part::error(const std::string& path, std::string message) { context_.error(path, std::move(message)); }
void Part::notice(const std::string& path, std::string message) { context_.notice(path, std::move(message)); }

void Part::missing(const std::string& path, std::string capability, std::string advice) {
  missing_.push_back({node_.nearest(path).location(), path, std::move(capability), std::move(advice)});
}

std::vector<Problem> Part::problems(std::vector<Missing>& missing) {
  std::vector<Problem> result;
  for (Problem& problem : check_keys(node_, schema_, {}, "ROLL has none of this name")) {
    std::optional<Missing> asked = as_missing(problem, schema_.find(problem.key), node_.find(problem.key));
    asked ? missing_.push_back(std::move(*asked)) : result.push_back(std::move(problem));
  }
  std::ranges::move(context_.take(), std::back_inserter(result));
  add_unread(node_, "", result);
  for (Problem& problem : result) problem.key = prefix_ + problem.key;
  for (Missing& each : missing_) {
    each.key = prefix_ + each.key;
    missing.push_back(std::move(each));
  }
  missing_.clear();
  return result;
}

bool Part::was_read(const std::string& path) const {
  for (std::string at = path;; at = at.substr(0, at.rfind('.'))) {
    if (read_.contains(at)) return true;
    if (at.find('.') == std::string::npos) return false;
  }
}

void Part::add_unread(const yaml::Node& map, const std::string& path, std::vector<Problem>& out) const {
  for (const auto& [name, value] : map.entries()) {
    const std::string full = path.empty() ? name : path + "." + name;
    const Key* key = schema_.find(full);
    if (!key || key->status != Status::effective || value.is_null() || was_read(full)) continue;
    if (value.is_map() && !key->open) {
      add_unread(value, full, out);
    } else {
      out.push_back({Problem::Severity::notice, value.location(), full, "not read: no part of this run takes it"});
    }
  }
}

void Pass::move(Part& part, const std::string& from, const std::string& path) {
  if (const yaml::Node* value = part.value(from)) set(path, value->value(), part, from);
}

void Pass::move_given(Part& part, const std::string& from, const std::string& path) {
  if (const yaml::Node* value = part.given(from)) set(path, value->value(), part, from);
}

}  // namespace hexad::config::roll
