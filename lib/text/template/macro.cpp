#include <algorithm>

#include "lib/text/template/evaluator.hpp"

namespace hexad::text::jinja {
namespace {

// Takes the argument called `name` out of the named ones.
std::optional<Value> take_named(Arguments& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found == arguments.named.end()) return std::nullopt;
  Value value = found->second;
  arguments.named.erase(found);
  return value;
}

// Sets the parameters in the current scope; what is left over goes to varargs and kwargs, or is a fault.
void bind_parameters(const MacroDefinition& macro, Arguments arguments, Evaluator& evaluator) {
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const MacroDefinition::Parameter& parameter = macro.parameters[i];
    std::optional<Value> named = take_named(arguments, parameter.name);
    if (i < arguments.positional.size()) {
      if (named) fault("macro '{}' got multiple values for argument '{}'", macro.name, parameter.name);
      evaluator.set(parameter.name, arguments.positional[i]);
    } else if (named) {
      evaluator.set(parameter.name, *named);
    } else if (parameter.fallback) {
      evaluator.set(parameter.name, parameter.fallback->evaluate(evaluator));
    } else {
      evaluator.set(parameter.name, make_undefined(fmt::format("parameter '{}' was not provided", parameter.name)));
    }
  }
  std::optional<Value> caller = take_named(arguments, "caller");
  if (caller && !macro.uses_caller) fault("macro '{}' takes no keyword argument 'caller'", macro.name);
  if (macro.uses_caller) evaluator.set("caller", caller.value_or(make_undefined("No caller defined")));

  const size_t count = macro.parameters.size();
  std::vector<Value> rest(
      arguments.positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, arguments.positional.size())),
      arguments.positional.end());
  if (!rest.empty() && !macro.uses_rest) fault("macro '{}' takes not more than {} argument(s)", macro.name, count);
  if (macro.uses_rest) evaluator.set("varargs", make_sequence(SequenceKind::tuple, std::move(rest), evaluator.budget));
  if (!arguments.named.empty() && !macro.uses_named_rest) {
    fault("macro '{}' takes no keyword argument '{}'", macro.name, arguments.named.front().first);
  }
  if (!macro.uses_named_rest) return;
  Dict named;
  for (auto& [name, value] : arguments.named) named.set(make_text(name, evaluator.budget), value, evaluator.budget);
  evaluator.set("kwargs", make_dict(std::move(named), evaluator.budget));
}

}  // namespace

Value make_macro(const MacroDefinition& definition, Evaluator& evaluator) {
  Callable macro;
  macro.name = definition.name;
  // Weak: the scope holds the macro.
  macro.call = [&definition, around = std::weak_ptr<Scope>(evaluator.scope())](Evaluator& running,
                                                                               Arguments& arguments) {
    std::shared_ptr<Scope> parent = around.lock();
    if (!parent) fault("macro '{}' was called after the block that defines it had ended", definition.name);
    const Budget::Level level(running.budget);
    const Evaluator::Inner inner(running, std::move(parent));
    bind_parameters(definition, arguments, running);
    Evaluator::Capture capture(running);
    execute(definition.body, running);
    return capture.take();
  };
  evaluator.budget.allocate(sizeof(Callable) + 64);
  return std::make_shared<const Callable>(std::move(macro));
}

Flow MacroStatement::run(Evaluator& evaluator) const {
  evaluator.set(macro.name, make_macro(macro, evaluator));
  return Flow::next;
}

Flow CallStatement::run(Evaluator& evaluator) const {
  const Value function = call->callee->evaluate(evaluator);
  Arguments arguments = call->arguments.evaluate(evaluator);
  arguments.named.emplace_back("caller", make_macro(caller, evaluator));
  const Value result = evaluator.call(function, arguments);
  if (result.text()) {
    evaluator.write(result.text()->bytes);
  } else if (!result.is_undefined()) {
    fault("{{% call %}} wants a macro");
  }
  return Flow::next;
}

}  // namespace hexad::text::jinja
