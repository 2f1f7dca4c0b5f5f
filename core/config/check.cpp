#include "core/config/check.hpp"

#include "core/base/error.hpp"
#include "core/config/check_keys.hpp"
#include "core/config/defaults.hpp"
#include "core/config/load.hpp"
#include "core/config/megatron_overrides.hpp"
#include "core/config/rules.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

std::string Problem::text() const {
  const std::string place = location.text();
  return fmt::format("{}{}: {}: {}", place.empty() ? "" : place + ": ", is_error() ? "error" : "notice", key, message);
}

std::vector<Problem> check(const Node& root) {
  std::vector<Problem> problems = check_keys(root);
  RuleContext context(root);
  check_run_rules(context);
  if (trains(root)) {
    check_loss_rules(context);
    check_batch_rules(context);
    check_grpo_rules(context);
    check_schedule_rules(context);
  }
  check_megatron_rules(context);
  check_generation_rules(context);
  std::ranges::move(context.take(), std::back_inserter(problems));
  std::ranges::stable_partition(problems, &Problem::is_error);
  return problems;
}

Node load_with_defaults(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  const KnownKeys known{
      [](const std::string& key) { return schema().find(schema_path(key)) || schema().is_free(schema_path(key)); },
      [](const std::string& key) {
        const std::string place = schema_path(key);
        return schema().children(place.find('.') == std::string::npos ? "" : place.substr(0, place.rfind('.')));
      }};
  Node root = compose(path, overrides, known);
  lift_model_overrides(root);
  fill_defaults(root);
  resolve_interpolations(root);
  return root;
}

Resolved resolve(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  Resolved result{load_with_defaults(path, overrides), {}};
  std::string errors;
  for (Problem& problem : check(result.root)) {
    if (problem.is_error()) {
      errors += (errors.empty() ? "" : "\n") + problem.text();
    } else {
      result.notices.push_back(std::move(problem));
    }
  }
  if (!errors.empty()) throw Error(ErrorKind::config, errors);
  return result;
}

}  // namespace hexad::config
