#include "lib/yaml/interpolation.hpp"

#include <charconv>

#include "lib/base/error.hpp"
#include "lib/yaml/source.hpp"

namespace hexad::yaml {
namespace {

constexpr size_t kLongestChain = 500;
// References that multiply each other can ask for any amount of work; no configuration comes near this much.
constexpr size_t kMostEvaluations = 1'000'000;
constexpr size_t kLongestText = 1 << 20;
constexpr size_t kMostTextBytes = size_t{64} << 20;  // of all texts, each counted wherever it comes to stand

bool is_interpolation(const Node& node) { return node.is_string() && has_interpolation(node.as_string()); }
// "a.b[c].d" as a, b, c, d.
std::vector<std::string> split_keys(std::string_view path) {
  std::vector<std::string> keys(1);
  for (const char c : path) {
    if (c == '.' || c == '[') {
      if (!keys.back().empty() || c == '.') keys.emplace_back();
    } else if (c != ']') {
      keys.back() += c;
    }
  }
  return keys;
}

// The entry under a key, the element under a number; null if there is none.
const Node* next_node(const Node& node, const std::string& key, std::string_view path) {
  if (!node.is_list()) return node.child(key);
  const std::optional<size_t> index = list_index(key);
  if (!index) fail(ErrorKind::config, "in {} the key {} is below a list, which has numbers for keys", path, key);
  return *index < node.items().size() ? &node.items()[*index] : nullptr;
}

// Marks a node as being evaluated for as long as it lives.
class Activity {
 public:
  Activity(std::vector<const Node*>& active, const Node* node) : active_(active) {
    if (std::ranges::find(active, node) != active.end()) {
      fail(ErrorKind::config, "the interpolation refers to itself");
    }
    if (active.size() >= kLongestChain) fail(ErrorKind::config, "interpolations follow each other too long");
    active_.push_back(node);
  }
  ~Activity() { active_.pop_back(); }
  Activity(const Activity&) = delete;

 private:
  std::vector<const Node*>& active_;
};

}  // namespace

Node Evaluator::evaluate(const Chain& chain) {
  const Node& node = *chain.back();
  if (++evaluations_ > kMostEvaluations)
    fail(ErrorKind::config, "interpolations come to more than {} values", kMostEvaluations);
  if (is_interpolation(node)) return evaluate_text(chain);
  count_bytes(node);
  if (!node.is_container()) return node;
  Chain below = chain;
  const auto evaluated = [&](const Node& part) {
    below.push_back(&part);
    Node value = evaluate(below);
    below.pop_back();
    return value;
  };
  if (node.is_list()) {
    Node::List items;
    items.reserve(node.items().size());
    for (const Node& item : node.items()) items.push_back(evaluated(item));
    return Node(std::move(items), node.location());
  }
  Node::Map entries;
  entries.reserve(node.entries().size());
  for (const auto& [key, value] : node.entries()) entries.emplace_back(key, evaluated(value));
  return Node(std::move(entries), node.location());
}

void Evaluator::count_bytes(const Node& value) {
  if (value.is_string()) bytes_ += value.as_string().size();
  if (bytes_ > kMostTextBytes)
    fail(ErrorKind::config, "interpolations come to more than {} MiB of text", kMostTextBytes >> 20);
}

Node Evaluator::evaluate_text(const Chain& chain) {
  const Node& node = *chain.back();
  const bool outermost = active_.empty();
  try {
    const Activity activity(active_, &node);
    // The value is where its text is: a message about it points there.
    Node value = evaluate_expression(parse_interpolation(node.as_string()), chain);
    value.set_location(node.location());
    count_bytes(value);
    return value;
  } catch (const Error& error) {
    if (!outermost) throw;
    fail(ErrorKind::config, "{}: {}: {}", node.location().text(), node.as_string(), error.what());
  }
}

Node Evaluator::evaluate_expression(const Expression& expression, const Chain& chain) {
  using Kind = Expression::Kind;
  if (expression.kind == Kind::literal) return expression.value;
  if (expression.kind == Kind::reference) return evaluate_reference(expression, chain);
  if (expression.kind == Kind::call) return evaluate_call(expression, chain);
  std::vector<Node> values;
  for (const Expression& part : expression.parts) values.push_back(evaluate_expression(part, chain));
  if (expression.kind == Kind::list) return Node(std::move(values));
  if (expression.kind == Kind::map) {
    Node result(Node::Map{});
    for (size_t i = 0; i < values.size(); ++i) {
      if (Node* old = result.child(expression.keys[i])) {
        *old = values[i];
      } else {
        result.entries().emplace_back(expression.keys[i], values[i]);
      }
    }
    return result;
  }
  std::string text;
  for (const Node& value : values) {
    text += python_str(value);
    if (text.size() > kLongestText) fail(ErrorKind::config, "the text is longer than {} bytes", kLongestText);
  }
  Node joined(text);
  if (std::ranges::any_of(values, has_source)) joined.set_source(text_source(values));
  return joined;
}

Node Evaluator::evaluate_reference(const Expression& expression, const Chain& chain) {
  const Chain target = referred(expression, chain);
  const Node& node = *target.back();
  if (node.is_missing()) fail(ErrorKind::config, "it refers to a mandatory value that is not set");
  if (std::ranges::find(chain, &node) != chain.end()) {
    fail(ErrorKind::config, "the interpolation refers to itself or to what it is part of");
  }
  return evaluate(target);
}

Evaluator::Chain Evaluator::referred(const Expression& expression, const Chain& chain) {
  // One dot is the container of the text, each further dot one container up; none is the root.
  Chain from = {root_};
  if (expression.up > 0) {
    if (static_cast<size_t>(expression.up) >= chain.size())
      fail(ErrorKind::config, "too many dots: there is nothing above the root");
    from.assign(chain.begin(), chain.end() - expression.up);
  }
  std::string path;
  for (const Expression& part : expression.parts) {
    const Node key = evaluate_expression(part, chain);
    if (!key.is_string()) fail(ErrorKind::config, "a key must be text, got {}", key.describe());
    path += (path.empty() ? "" : ".") + key.as_string();
  }
  Chain target = select(from, path);
  if (target.empty()) fail(ErrorKind::config, "key {} does not exist", path);
  return target;
}

Evaluator::Chain Evaluator::select(Chain from, std::string_view path, BelowScalar below_scalar) {
  const std::vector<std::string> keys = split_keys(path);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && is_interpolation(*from.back())) {
      from = follow(std::move(from));
      if (is_interpolation(*from.back())) {
        from = {results_.emplace_back(std::make_unique<Node>(evaluate_text(from))).get()};
      }
    }
    const Node& node = *from.back();
    if (node.is_null() || node.is_missing()) return {};
    const bool container = node.is_container();
    if (!container && below_scalar == BelowScalar::absent) return {};
    if (!container) fail(ErrorKind::config, "in {} the key {} is below {}", path, keys[i], node.describe());
    const Node* next = next_node(node, keys[i], path);
    if (!next) return {};
    from.push_back(next);
  }
  return from;
}

Evaluator::Chain Evaluator::follow(Chain chain) {
  if (!is_interpolation(*chain.back())) return chain;
  const Activity activity(following_, chain.back());
  const Expression expression = parse_interpolation(chain.back()->as_string());
  return expression.kind == Expression::Kind::reference ? follow(referred(expression, chain)) : chain;
}

Evaluator::Chain Evaluator::dereference(Chain chain) {
  try {
    return follow(std::move(chain));
  } catch (const Error&) {
    return {};
  }
}

Node Evaluator::evaluate_call(const Expression& expression, const Chain& chain) {
  const std::string name = python_str(evaluate_expression(expression.parts[0], chain));
  std::vector<Node> arguments;
  for (size_t i = 1; i < expression.parts.size(); ++i) {
    arguments.push_back(evaluate_expression(expression.parts[i], chain));
  }
  const auto with_source = [&](Node value) {
    if (std::ranges::any_of(arguments, has_source)) value.set_source(call_source(name, arguments));
    return value;
  };
  if (name == "oc.decode" && arguments.size() == 1) return with_source(decode(arguments[0], chain));
  if (name == "oc.select" && !arguments.empty() && arguments.size() <= 2 && arguments[0].is_string()) {
    return select_or_default(arguments);
  }
  return with_source(call_resolver(name, arguments));
}

Node Evaluator::select_or_default(const std::vector<Node>& arguments) {
  const Node otherwise = arguments.size() == 2 ? arguments[1] : Node();
  const Chain target = select({root_}, arguments[0].as_string(), BelowScalar::absent);
  return target.empty() || target.back()->is_missing() ? otherwise : evaluate(target);
}

Node Evaluator::decode(const Node& text, const Chain& chain) {
  if (text.is_null()) return text;
  if (!text.is_string()) fail(ErrorKind::config, "oc.decode takes text, got {}", text.describe());
  return evaluate_expression(parse_element(text.as_string()), chain);
}

namespace {

// The texts of a tree that hold interpolations, with what they come to. The tree stays as it is while they are found,
// because they refer to each other.
class Resolution {
 public:
  explicit Resolution(Node& root) : evaluator_(root) { visit(root); }

  void apply() {
    for (auto& [node, value] : values_) *node = std::move(value);
  }

 private:
  void visit(Node& node) {
    chain_.push_back(&node);
    if (is_interpolation(node)) values_.emplace_back(&node, evaluator_.evaluate(chain_));
    if (node.is_list()) {
      for (Node& item : node.items()) visit(item);
    } else if (node.is_map()) {
      for (auto& [key, value] : node.entries()) visit(value);
    }
    chain_.pop_back();
  }

  Evaluator evaluator_;
  Evaluator::Chain chain_;
  std::vector<std::pair<Node*, Node>> values_;
};

}  // namespace

void resolve_interpolations(Node& root) { Resolution(root).apply(); }

}  // namespace hexad::yaml
