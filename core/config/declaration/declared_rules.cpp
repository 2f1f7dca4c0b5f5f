#include "core/config/declaration/declared_rules.hpp"

#include <fmt/format.h>

namespace hexad::config {
namespace {

// The scope's names and the declaration's own, of which each is evaluated once, when it is asked for.
class DeclaredNames {
 public:
  DeclaredNames(const Declaration& declaration, const Scope& scope, const CheckNames& checked)
      : declaration_(declaration), scope_(scope), checked_(checked) {}

  expression::Lookup lookup() {
    return [this](std::string_view path) { return find(path); };
  }

 private:
  std::optional<expression::Value> find(std::string_view path) {
    constexpr std::string_view kLets = "lets.", kCheck = "check.";
    if (path.starts_with(kCheck)) {
      const auto found = checked_.find(path.substr(kCheck.size()));
      return found == checked_.end() ? std::nullopt : std::optional(found->second);
    }
    if (!path.starts_with(kLets)) return scope_.find(path);
    const std::string name(path.substr(kLets.size()));
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    for (const auto& [let, value] : declaration_.lets) {
      if (let == name) return values_.emplace(name, value.evaluate(lookup())).first->second;
    }
    return std::nullopt;
  }

  const Declaration& declaration_;
  const Scope& scope_;
  const CheckNames& checked_;
  std::map<std::string, std::optional<expression::Value>> values_;
};

std::optional<int64_t> integer(const expression::Expression& expression, const expression::Lookup& lookup) {
  const std::optional<expression::Value> value = expression.evaluate(lookup);
  const int64_t* whole = value ? std::get_if<int64_t>(&value->data) : nullptr;
  return whole ? std::optional(*whole) : std::nullopt;
}

// "; nearest: 2 or 4": the valid values next to `value`, from 1 to `most`, on either side. "" if there is none.
std::string nearest_text(int64_t value, int64_t most, const std::function<bool(int64_t)>& valid) {
  constexpr int64_t kFarthest = 100'000;
  const auto search = [&](int64_t from, int64_t step) -> std::optional<int64_t> {
    for (int64_t at = from; at >= 1 && at <= most && std::abs(at - value) <= kFarthest; at += step) {
      if (valid(at)) return at;
    }
    return std::nullopt;
  };
  const std::optional<int64_t> below = search(std::min(value - 1, most), -1), above = search(value + 1, 1);
  if (below && above) return fmt::format("; nearest: {} or {}", *below, *above);
  if (below || above) return fmt::format("; nearest: {}", below ? *below : *above);
  return "";
}

std::string nearest_of(const Nearest& nearest, const expression::Lookup& lookup) {
  const std::optional<int64_t> value = integer(nearest.value, lookup), most = integer(nearest.most, lookup);
  if (!value || !most) return "";
  return nearest_text(*value, *most, [&](int64_t candidate) {
    const expression::Lookup with = [&](std::string_view path) {
      return path == "it" ? std::optional(expression::Value(candidate)) : lookup(path);
    };
    return nearest.holds.holds(with).value_or(false);
  });
}

}  // namespace

std::vector<Problem> check_declared(const Declaration& declaration, const Scope& scope, const CheckNames& checked) {
  std::vector<Problem> problems;
  DeclaredNames names(declaration, scope, checked);
  const expression::Lookup lookup = names.lookup();
  for (const DeclaredRule& rule : declaration.rules) {
    if (rule.when && !rule.when->holds(lookup).value_or(false)) continue;
    if (rule.require.holds(lookup).value_or(true)) continue;
    const bool absolute = rule.key.starts_with("run.");
    const std::string key = absolute ? rule.key.substr(4) : scope.block() + "." + rule.key;
    std::string text = rule.message.format(lookup);
    if (rule.nearest) text += nearest_of(*rule.nearest, lookup);
    problems.push_back({rule.notice ? Problem::Severity::notice : Problem::Severity::error,
                        scope.root().nearest(key).location(), key, std::move(text)});
  }
  return problems;
}

std::optional<FactValues> fact_values(const Declaration& declaration, std::string_view name, const Scope& scope) {
  const auto found = declaration.facts.find(name);
  if (found == declaration.facts.end()) return std::nullopt;
  const Fact& fact = found->second;
  static const CheckNames none;
  DeclaredNames names(declaration, scope, none);
  const expression::Lookup lookup = names.lookup();
  if (fact.when && !fact.when->holds(lookup).value_or(false)) return std::nullopt;
  FactValues values;
  if (fact.value) {
    const std::optional<expression::Value> value = fact.value->evaluate(lookup);
    if (!value) return std::nullopt;
    values[""] = *value;
  }
  for (const auto& [member, expression] : fact.members) {
    const std::optional<expression::Value> value = expression.evaluate(lookup);
    if (!value) return std::nullopt;
    values[member] = *value;
  }
  return values;
}

}  // namespace hexad::config
