#include "lib/expression/expression.hpp"

#include <span>

#include "lib/expression/operators.hpp"
#include "lib/expression/program.hpp"

namespace hexad::expression {

Expression Expression::parse(std::string_view text) {
  return Expression(std::make_shared<const Program>(parse_program(text)));
}

std::optional<Value> Expression::evaluate(const Lookup& lookup) const {
  using Known = std::optional<Value>;
  std::vector<Known> stack;
  const auto run = [&](const Instruction& step) -> Known {
    if (step.op == Op::constant) return program_->constants[step.index];
    if (step.op == Op::path) return lookup(program_->paths[step.index]);
    if (step.op != Op::has && step.op != Op::known)
      return apply(step.op, std::span<const Known>(stack).last(step.operands));
    const Known found = lookup(program_->paths[step.index]);
    if (step.op == Op::known) return Value(found.has_value());
    return found ? Known(Value(!found->is_null())) : std::nullopt;
  };
  for (const Instruction& step : program_->code) {
    Known result = run(step);
    stack.resize(stack.size() - step.operands);
    stack.push_back(std::move(result));
  }
  return std::move(stack.back());
}

std::optional<bool> Expression::holds(const Lookup& lookup) const {
  const std::optional<Value> value = evaluate(lookup);
  const bool* truth = value ? std::get_if<bool>(&value->data) : nullptr;
  return truth ? std::optional(*truth) : std::nullopt;
}

const std::vector<std::string>& Expression::paths() const { return program_->paths; }
const std::string& Expression::text() const { return program_->text; }

}  // namespace hexad::expression
