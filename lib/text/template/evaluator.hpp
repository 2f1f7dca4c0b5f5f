// One rendering of a template: variables, output, budget.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/text/template/budget.hpp"
#include "lib/text/template/syntax/statement.hpp"

namespace hexad::text::jinja {

// The variables of a block; names are looked up from the innermost scope outwards.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> variables;
  void set(std::string_view name, Value value);
};

class Evaluator {
 public:
  explicit Evaluator(const RenderLimits& limits) : budget(limits), scope_(std::make_shared<Scope>()) {}
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Executes the template with the variables that were set before. Throws hexad::Error with origin and line.
  std::string render(const Template& parsed);

  Value lookup(std::string_view name) const;  // undefined when nothing has that name
  void set(std::string_view name, Value value) { scope_->set(name, std::move(value)); }
  const std::shared_ptr<Scope>& scope() const { return scope_; }

  void write(std::string_view text);
  Value call(const Value& callee, Arguments& arguments);
  Value make_namespace(Dict attributes);

  // While it lives, variables are set in a new scope inside `parent` (default: the current one).
  class Inner {
   public:
    explicit Inner(Evaluator& evaluator) : Inner(evaluator, evaluator.scope_) {}
    Inner(Evaluator& evaluator, std::shared_ptr<Scope> parent);
    ~Inner() { evaluator_.scope_ = std::move(outer_); }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

   private:
    Evaluator& evaluator_;
    std::shared_ptr<Scope> outer_;
  };

  // While it lives, output goes into it.
  class Capture {
   public:
    explicit Capture(Evaluator& evaluator) : evaluator_(evaluator), outer_(evaluator.output_) {
      evaluator.output_ = &text_;
    }
    ~Capture() { evaluator_.output_ = outer_; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    Value take() { return make_text(std::move(text_), evaluator_.budget); }

   private:
    Evaluator& evaluator_;
    std::string* outer_;
    std::string text_;
  };

  Budget budget;
  int line = 1;  // of what is being evaluated, for messages

 private:
  std::shared_ptr<Scope> scope_;
  std::string text_;
  std::string* output_ = &text_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;  // emptied at the end: they can refer to themselves
};

// A macro as a value. Its body sees the variables of the scope that it was defined in.
Value make_macro(const MacroDefinition& definition, Evaluator& evaluator);

}  // namespace hexad::text::jinja
