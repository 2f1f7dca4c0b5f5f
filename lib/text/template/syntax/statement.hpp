// Statements of a parsed template.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/text/template/syntax/expression.hpp"

namespace hexad::text::jinja {

// How a statement ended: {% break %} and {% continue %} unwind to their loop.
enum class Flow { next, break_loop, continue_loop };

struct Statement {
  explicit Statement(int line) : line(line) {}
  virtual ~Statement() = default;
  Flow execute(Evaluator& evaluator) const;

  const int line;

 private:
  virtual Flow run(Evaluator& evaluator) const = 0;
};
using Block = std::vector<std::unique_ptr<const Statement>>;

Flow execute(const Block& block, Evaluator& evaluator);

// What `set`, `for` and `with` assign to: a name, an attribute of a namespace, or several of them.
struct Target {
  int line = 0;
  std::string name, attribute;
  std::vector<Target> parts;  // when not empty, the value is unpacked
  void assign(const Value& value, Evaluator& evaluator) const;
};

struct DataStatement : Statement {
  DataStatement(int line, std::string data) : Statement(line), data(std::move(data)) {}
  Flow run(Evaluator& evaluator) const override;
  std::string data;
};

struct PrintStatement : Statement {
  PrintStatement(int line, ExpressionPtr expression) : Statement(line), expression(std::move(expression)) {}
  Flow run(Evaluator& evaluator) const override;
  ExpressionPtr expression;
};

struct IfStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block otherwise;
};

struct ForStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  // One round of the loop over `iterable`; recursive calls come here with a larger depth.
  void loop(const Value& iterable, int depth0, Evaluator& evaluator) const;
  Target target;
  ExpressionPtr iterable, condition;
  bool recursive = false;
  Block body, otherwise;
};

struct SetStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  Target target;
  ExpressionPtr value;
};

// {% set name | filter %} ... {% endset %}
struct SetBlockStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  Target target;
  std::vector<std::pair<std::string, ArgumentList>> filters;
  Block body;
};

// {% filter name %} ... {% endfilter %}
struct FilterStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  std::vector<std::pair<std::string, ArgumentList>> filters;
  Block body;
};

// {% with a = 1, b = 2 %}; {% generation %} is one without variables.
struct WithStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Block body;
};

// Parameters and body of a macro or of the block given to a {% call %}.
struct MacroDefinition {
  struct Parameter {
    std::string name;
    ExpressionPtr fallback;  // null: undefined when not given
  };
  std::string name;
  std::vector<Parameter> parameters;
  bool uses_rest = false, uses_named_rest = false, uses_caller = false;  // varargs, kwargs, caller appear in it
  Block body;
};

struct MacroStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  MacroDefinition macro;
};

// {% call(parameters) macro(arguments) %} body {% endcall %}
struct CallStatement : Statement {
  using Statement::Statement;
  Flow run(Evaluator& evaluator) const override;
  MacroDefinition caller;
  std::unique_ptr<const Call> call;
};

struct JumpStatement : Statement {
  JumpStatement(int line, Flow flow) : Statement(line), flow(flow) {}
  Flow run(Evaluator&) const override { return flow; }
  Flow flow;
};

struct Template {
  std::string source, origin;
  Block body;
};

}  // namespace hexad::text::jinja
