#include "lib/text/template/syntax/statement.hpp"

#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/loop.hpp"
#include "lib/text/template/value/python_text.hpp"

namespace hexad::text::jinja {
namespace {

void assign_attribute(const Target& target, const Value& value, Evaluator& evaluator) {
  const Value object = evaluator.lookup(target.name);
  if (!object.space()) fault("cannot assign attribute on non-namespace object");
  if (target.attribute.starts_with('_'))
    fault("a namespace cannot have the attribute '{}': its name begins with '_'", target.attribute);
  object.space()->attributes.set(make_text(target.attribute, evaluator.budget), value, evaluator.budget);
}

void unpack(const std::vector<Target>& parts, const Value& value, Evaluator& evaluator) {
  const std::vector<Value> items = to_vector(value, evaluator.budget);
  if (items.size() > parts.size()) fault("too many values to unpack (expected {})", parts.size());
  if (items.size() < parts.size())
    fault("not enough values to unpack (expected {}, got {})", parts.size(), items.size());
  for (size_t i = 0; i < parts.size(); ++i) parts[i].assign(items[i], evaluator);
}

Value filtered(Value value, const std::vector<std::pair<std::string, ArgumentList>>& filters, Evaluator& evaluator) {
  for (const auto& [name, arguments] : filters) {
    Arguments values = arguments.evaluate(evaluator);
    value = apply_filter(evaluator, name, value, values);
  }
  return value;
}

}  // namespace

Flow Statement::execute(Evaluator& evaluator) const {
  const Budget::Level level(evaluator.budget);
  evaluator.budget.step();
  const int outer = std::exchange(evaluator.line, line);
  const Flow flow = run(evaluator);
  evaluator.line = outer;
  return flow;
}

Flow execute(const Block& block, Evaluator& evaluator) {
  for (const auto& statement : block) {
    if (const Flow flow = statement->execute(evaluator); flow != Flow::next) return flow;
  }
  return Flow::next;
}

void Target::assign(const Value& value, Evaluator& evaluator) const {
  if (!parts.empty()) return unpack(parts, value, evaluator);
  if (!attribute.empty()) return assign_attribute(*this, value, evaluator);
  evaluator.budget.allocate(sizeof(Value));
  evaluator.set(name, value);
}

Flow DataStatement::run(Evaluator& evaluator) const {
  evaluator.write(data);
  return Flow::next;
}

Flow PrintStatement::run(Evaluator& evaluator) const {
  evaluator.write(str(expression->evaluate(evaluator), evaluator.budget));
  return Flow::next;
}

Flow IfStatement::run(Evaluator& evaluator) const {
  for (const auto& [condition, block] : branches) {
    if (truth(condition->evaluate(evaluator))) return jinja::execute(block, evaluator);
  }
  return jinja::execute(otherwise, evaluator);
}

Flow ForStatement::run(Evaluator& evaluator) const {
  loop(iterable->evaluate(evaluator), 0, evaluator);
  return Flow::next;
}

void ForStatement::loop(const Value& values, int depth0, Evaluator& evaluator) const {
  Value source = values;
  if (condition) {
    // Tested when the loop comes to an item, not before: the body may change what the condition looks at.
    source = make_generator(
        [this, &evaluator, next = iterate(values, evaluator.budget),
         around = std::weak_ptr<Scope>(evaluator.scope())](Value& out) {
          while (next(out)) {
            const Evaluator::Inner inner(evaluator, around.lock());
            target.assign(out, evaluator);
            if (truth(condition->evaluate(evaluator))) return true;
          }
          return false;
        },
        values.depth(), evaluator.budget);
  }
  const auto state = std::make_shared<LoopState>(source, depth0, evaluator.budget);
  state->scope = evaluator.scope();
  if (recursive) state->statement = this;
  while (state->advance()) {
    const Evaluator::Inner inner(evaluator);
    evaluator.set("loop", state);
    target.assign(state->current, evaluator);
    if (jinja::execute(body, evaluator) == Flow::break_loop) break;
  }
  if (state->index0 >= 0) return;
  const Evaluator::Inner inner(evaluator);
  jinja::execute(otherwise, evaluator);
}

Flow SetStatement::run(Evaluator& evaluator) const {
  target.assign(value->evaluate(evaluator), evaluator);
  return Flow::next;
}

Flow SetBlockStatement::run(Evaluator& evaluator) const {
  Evaluator::Capture capture(evaluator);
  Value text;
  {
    const Evaluator::Inner inner(evaluator);
    jinja::execute(body, evaluator);
    text = filtered(capture.take(), filters, evaluator);
  }
  target.assign(text, evaluator);
  return Flow::next;
}

Flow FilterStatement::run(Evaluator& evaluator) const {
  Value text;
  {
    Evaluator::Capture capture(evaluator);
    const Evaluator::Inner inner(evaluator);
    jinja::execute(body, evaluator);
    text = filtered(capture.take(), filters, evaluator);
  }
  evaluator.write(str(text, evaluator.budget));
  return Flow::next;
}

Flow WithStatement::run(Evaluator& evaluator) const {
  std::vector<Value> values;  // evaluated outside: they do not see each other
  for (const auto& [target, value] : variables) values.push_back(value->evaluate(evaluator));
  const Evaluator::Inner inner(evaluator);
  for (size_t i = 0; i < values.size(); ++i) variables[i].first.assign(values[i], evaluator);
  return jinja::execute(body, evaluator);
}

}  // namespace hexad::text::jinja
