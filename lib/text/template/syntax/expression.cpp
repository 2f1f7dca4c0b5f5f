#include "lib/text/template/syntax/expression.hpp"

#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/value/python_text.hpp"

namespace hexad::text::jinja {

Value Expression::evaluate(Evaluator& evaluator) const {
  const Budget::Level level(evaluator.budget);
  evaluator.budget.step();
  const int outer = std::exchange(evaluator.line, line);
  Value value = compute(evaluator);
  evaluator.line = outer;  // not after a fault: the message names the innermost line
  return value;
}

Value Name::compute(Evaluator& evaluator) const { return evaluator.lookup(name); }

Value Display::compute(Evaluator& evaluator) const {
  std::vector<Value> values;
  for (const ExpressionPtr& item : items) values.push_back(item->evaluate(evaluator));
  return make_sequence(kind, std::move(values), evaluator.budget);
}

Value DictDisplay::compute(Evaluator& evaluator) const {
  Dict dict;
  for (const auto& [key, value] : entries) {
    const Value evaluated = key->evaluate(evaluator);
    dict.set(evaluated, value->evaluate(evaluator), evaluator.budget);
  }
  return make_dict(std::move(dict), evaluator.budget);
}

Value Attribute::compute(Evaluator& evaluator) const {
  return get_attribute(object->evaluate(evaluator), name, evaluator.budget);
}

Value Subscript::compute(Evaluator& evaluator) const {
  const Value container = object->evaluate(evaluator);
  return get_item(container, index->evaluate(evaluator), evaluator.budget);
}

Value Slice::compute(Evaluator& evaluator) const {
  const Value container = object->evaluate(evaluator);
  const auto part = [&](const ExpressionPtr& expression) {
    return expression ? expression->evaluate(evaluator) : Value();
  };
  const Value begin = part(start), end = part(stop), stride = part(step);
  return get_slice(container, begin, end, stride, evaluator.budget);
}

Arguments ArgumentList::evaluate(Evaluator& evaluator) const {
  Arguments arguments;
  for (const ExpressionPtr& argument : positional) arguments.positional.push_back(argument->evaluate(evaluator));
  if (rest) {
    for (Value& value : to_vector(rest->evaluate(evaluator), evaluator.budget))
      arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : named) arguments.named.emplace_back(name, argument->evaluate(evaluator));
  if (named_rest) {
    const Value mapping = named_rest->evaluate(evaluator);
    if (!mapping.dict()) fault("argument after ** must be a mapping, not {}", type_name(mapping));
    for (const auto& [key, value] : mapping.dict()->entries) {
      if (!key.text()) fault("keywords must be strings");
      for (const auto& [name, argument] : named)
        if (name == key.text()->bytes) fault("got multiple values for keyword argument '{}'", name);
      arguments.named.emplace_back(key.text()->bytes, value);
    }
  }
  evaluator.budget.allocate((arguments.positional.size() + arguments.named.size()) * sizeof(Value));
  return arguments;
}

Value Call::compute(Evaluator& evaluator) const {
  const Value function = callee->evaluate(evaluator);
  Arguments values = arguments.evaluate(evaluator);
  return evaluator.call(function, values);
}

Value FilterCall::compute(Evaluator& evaluator) const {
  const Value value = input->evaluate(evaluator);
  Arguments values = arguments.evaluate(evaluator);
  return apply_filter(evaluator, name, value, values);
}

Value TestCall::compute(Evaluator& evaluator) const {
  const Value value = input->evaluate(evaluator);
  Arguments values = arguments.evaluate(evaluator);
  return apply_test(evaluator, name, value, values);
}

Value Unary::compute(Evaluator& evaluator) const {
  const Value value = operand->evaluate(evaluator);
  if (op == UnaryOp::logical_not) return !truth(value);
  if (value.is_undefined()) fault_undefined(value);
  if (!value.is_number())
    fault("bad operand type for unary {}: '{}'", op == UnaryOp::negate ? '-' : '+', type_name(value));
  if (value.is<double>()) return op == UnaryOp::negate ? -value.real() : value.real();
  return op == UnaryOp::negate ? arithmetic("-", Int{0}, value, evaluator.budget) : Value(value.integer());
}

Value Binary::compute(Evaluator& evaluator) const {
  const Value a = left->evaluate(evaluator);
  return arithmetic(op, a, right->evaluate(evaluator), evaluator.budget);
}

Value Logical::compute(Evaluator& evaluator) const {
  Value value = left->evaluate(evaluator);
  return truth(value) == is_and ? right->evaluate(evaluator) : value;
}

Value Comparison::compute(Evaluator& evaluator) const {
  Value a = first->evaluate(evaluator);
  for (const auto& [op, operand] : rest) {
    Value b = operand->evaluate(evaluator);
    if (!compare(op, a, b, evaluator.budget)) return false;
    a = std::move(b);
  }
  return true;
}

Value Concatenation::compute(Evaluator& evaluator) const {
  std::string text;
  for (const ExpressionPtr& part : parts) {
    const std::string piece = str(part->evaluate(evaluator), evaluator.budget);
    evaluator.budget.allocate(piece.size());
    text += piece;
  }
  return make_text(std::move(text), evaluator.budget);
}

Value Conditional::compute(Evaluator& evaluator) const {
  if (truth(condition->evaluate(evaluator))) return yes->evaluate(evaluator);
  if (no) return no->evaluate(evaluator);
  return make_undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.", line));
}

}  // namespace hexad::text::jinja
