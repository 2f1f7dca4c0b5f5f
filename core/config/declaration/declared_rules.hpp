// The rules and facts of the plugins that a run chooses.
#pragma once
#include "core/config/declaration/scope.hpp"
#include "core/config/declaration/selection.hpp"
#include "core/config/typed/run_facts.hpp"

namespace hexad::config {

// The values that a check library gives to the rules, by name.
using CheckNames = std::map<std::string, expression::Value, std::less<>>;

// What the declaration's rules say about the block.
std::vector<Problem> check_declared(const Declaration& declaration, const Scope& scope, const CheckNames& names);

// The values of a fact: of the fact itself under "", of the members of one that is a map under their names. Nothing
// where the declaration has no such fact, its `when` does not hold, or a value cannot be known.
using FactValues = std::map<std::string, expression::Value>;
std::optional<FactValues> fact_values(const Declaration& declaration, std::string_view fact, const Scope& scope);

// Facts that cannot be known for want of a value that is right are left at their defaults: what is wrong is reported by
// the checks of keys. A fact of a wrong kind is one more of `problems`.
RunFacts read_facts(const yaml::Node& root, const Selection& selection, const World& world,
                    const nlohmann::ordered_json& model, std::vector<Problem>& problems);

}  // namespace hexad::config
