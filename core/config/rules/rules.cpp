#include "core/config/rules/rules.hpp"

#include "lib/base/error.hpp"
#include "core/config/load/defaults.hpp"
#include "lib/yaml/interpolation_grammar.hpp"
#include "lib/model/error.hpp"

namespace hexad::config {

const yaml::Node* RuleContext::value(const std::string& path) const {
  if (const yaml::Node* found = root_.find(path)) return found->is_null() ? nullptr : found;
  const Key* key = defaults_from_.find(path);
  if (!key || key->default_yaml.empty() || yaml::has_interpolation(key->default_yaml)) return nullptr;
  defaults_.push_back(std::make_unique<yaml::Node>(default_value(key->default_yaml)));
  return defaults_.back()->is_null() ? nullptr : defaults_.back().get();
}

bool RuleContext::flag(const std::string& path) const {
  const yaml::Node* node = value(path);
  return node && node->is_bool() && node->as_bool();
}

std::optional<int64_t> RuleContext::integer(const std::string& path) const {
  const std::optional<double> found = number(path);
  if (!found || *found != static_cast<double>(static_cast<int64_t>(*found))) return std::nullopt;
  return static_cast<int64_t>(*found);
}

std::optional<double> RuleContext::number(const std::string& path) const {
  const yaml::Node* node = value(path);
  if (!node || !node->is_number()) return std::nullopt;
  const double number = node->as_double();
  if (!(number > -9e15 && number < 9e15)) return std::nullopt;
  return number;
}

std::optional<std::string> RuleContext::text(const std::string& path) const {
  const yaml::Node* node = value(path);
  if (!node || !node->is_string()) return std::nullopt;
  return node->as_string();
}

std::string RuleContext::backend() const { return facts_.backend; }

std::optional<int64_t> RuleContext::generation_ranks() const { return world_of(root_).generate_ranks; }

std::optional<int64_t> RuleContext::training_ranks() const { return world_of(root_).train_ranks; }

std::optional<int64_t> RuleContext::data_parallel_size() const {
  const std::optional<int64_t> ranks = training_ranks(), copy = facts_.copy_ranks;
  if (!ranks || !copy || *copy < 1 || *ranks % *copy != 0) return std::nullopt;
  return *ranks / *copy;
}

void RuleContext::add(Problem::Severity severity, const std::string& path, std::string message) {
  problems_.push_back({severity, root_.nearest(path).location(), path, std::move(message)});
}

}  // namespace hexad::config
