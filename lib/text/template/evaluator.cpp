#include "lib/text/template/evaluator.hpp"

#include "lib/base/error.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/loop.hpp"

namespace hexad::text::jinja {

void Scope::set(std::string_view name, Value value) {
  for (auto& [existing, held] : variables) {
    if (existing == name) {
      held = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

Evaluator::Inner::Inner(Evaluator& evaluator, std::shared_ptr<Scope> parent)
    : evaluator_(evaluator), outer_(evaluator.scope_) {
  evaluator.budget.allocate(sizeof(Scope));
  evaluator.scope_ = std::make_shared<Scope>(Scope{std::move(parent), {}});
}

Evaluator::~Evaluator() {
  for (const std::shared_ptr<Namespace>& space : namespaces_) space->attributes = Dict();
}

std::string Evaluator::render(const Template& parsed) {
  try {
    execute(parsed.body, *this);
  } catch (const Fault& error) {
    fail(ErrorKind::data, "{}:{}: {}", parsed.origin, line, error.what());
  }
  return std::move(text_);
}

Value Evaluator::lookup(std::string_view name) const {
  for (const Scope* scope = scope_.get(); scope; scope = scope->parent.get()) {
    for (const auto& [existing, value] : scope->variables) {
      if (existing == name) return value;
    }
  }
  if (const Value* global = find_global(name)) return *global;
  return make_undefined(fmt::format("'{}' is undefined", name));
}

void Evaluator::write(std::string_view text) {
  budget.require_output(output_->size() + text.size());
  budget.allocate(text.size());
  output_->append(text);
}

Value Evaluator::call(const Value& callee, Arguments& arguments) {
  if (const Callable* function = callee.callable()) return function->call(*this, arguments);
  if (callee.is_undefined()) fault_undefined(callee);
  const LoopState* loop = callee.loop();
  if (!loop) fault("'{}' object is not callable", type_name(callee));
  if (!loop->statement) fault("this loop is not recursive: write {{% for ... recursive %}}");
  if (arguments.positional.size() != 1 || !arguments.named.empty())
    fault("loop() takes one argument: what to loop over");
  const std::shared_ptr<Scope> around = loop->scope.lock();
  if (!around) fault("loop() was called after its loop had ended");
  const Inner inner(*this, around);
  Capture capture(*this);
  loop->statement->loop(arguments.positional[0], loop->depth0 + 1, *this);
  return capture.take();
}

Value Evaluator::make_namespace(Dict attributes) {
  budget.allocate(sizeof(Namespace));
  namespaces_.push_back(std::make_shared<Namespace>(Namespace{std::move(attributes)}));
  return namespaces_.back();
}

}  // namespace hexad::text::jinja
