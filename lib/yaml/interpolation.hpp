// Evaluates `${...}` over a whole tree.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/yaml/interpolation_grammar.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// Reads a tree whose texts hold interpolations. Relative references count from where a text stands. Keeps a reference
// to the tree, which must not change meanwhile.
class Evaluator {
 public:
  // A position in the tree: the nodes from the root down to it.
  using Chain = std::vector<const Node*>;

  explicit Evaluator(const Node& root) : root_(&root) {}

  // The value at a position, with every interpolation below it replaced by its value; text "???" stays.
  // Throws Error(config) with the place of the text: missing key, cycle, "???" referred to, a resolver's complaint.
  Node evaluate(const Chain& chain);

  // What a path that leads below a number or a text comes to.
  enum class BelowScalar { error, absent };

  // The position of a dotted path, following interpolations on the way (not at the end). Empty if there is none.
  // A list element by name is an error.
  Chain select(Chain from, std::string_view path, BelowScalar below_scalar = BelowScalar::error);

  // Goes where a plain reference leads in the end, and stays at any other value. Throws where it leads nowhere;
  // dereference() gives an empty chain then.
  Chain follow(Chain chain);
  Chain dereference(Chain chain);

 private:
  Node evaluate_text(const Chain& chain);
  Node evaluate_expression(const Expression& expression, const Chain& chain);
  Node evaluate_reference(const Expression& expression, const Chain& chain);
  Node evaluate_call(const Expression& expression, const Chain& chain);
  Node select_or_default(const std::vector<Node>& arguments);
  Node decode(const Node& text, const Chain& chain);
  Chain referred(const Expression& expression, const Chain& chain);

  const Node* root_;
  std::vector<const Node*> active_;             // the texts being evaluated, to find cycles
  std::vector<const Node*> following_;          // the references being followed, likewise
  std::vector<std::unique_ptr<Node>> results_;  // values made on the way to a reference's end
  void count_bytes(const Node& value);

  size_t evaluations_ = 0, bytes_ = 0;
};

// Replaces every interpolation of a whole tree by its value. Throws as Evaluator::evaluate does.
void resolve_interpolations(Node& root);

// The functions of `${name:arguments}` that need no look at the tree: NeMo-RL's add, mul, div, max (two arguments,
// Python's arithmetic: integers stay integers, div is true division) and OmegaConf's oc.env (environment variable,
// default), whose value has a source() if there is the variable. Throws Error(config) for an unknown name, a wrong
// number or kind of arguments, division by zero, an integer beyond 64 bits, a variable that is not set.
Node call_resolver(const std::string& name, const std::vector<Node>& arguments);

}  // namespace hexad::yaml
