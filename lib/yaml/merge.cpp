#include "lib/yaml/merge.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/interpolation.hpp"

namespace hexad::yaml {
namespace {

Evaluator::Chain chain_to(const Node& root, const std::vector<std::string>& path) {
  Evaluator::Chain chain = {&root};
  for (const std::string& key : path) {
    const Node& node = *chain.back();
    chain.push_back(node.is_list() ? &node.items()[std::stoul(key)] : node.child(key));
  }
  return chain;
}

// Replaces a reference to a map or list by a copy of it.
void expand_reference(const Node& root, const std::vector<std::string>& path, Node& node) {
  if (!node.is_string() || !has_interpolation(node.as_string())) return;
  const Evaluator::Chain target = Evaluator(root).dereference(chain_to(root, path));
  if (!target.empty() && target.back()->is_container()) {
    Node copy = *target.back();
    node = std::move(copy);
  }
}

}  // namespace

void merge(Node& root, const std::vector<std::string>& path, const Node& source, NewKeys new_keys) {
  Node& target = *const_cast<Node*>(chain_to(root, path).back());
  for (const auto& [key, value] : source.entries()) {
    std::vector<std::string> below = path;
    below.push_back(key);
    Node* old = target.child(key);
    if (!old) {
      if (new_keys == NewKeys::refused) {
        fail(ErrorKind::config, "key {} does not exist", joined(below, "."));
      }
      target.entries().emplace_back(key, value);
      continue;
    }
    expand_reference(root, below, *old);
    if (value.is_missing()) continue;
    if (old->is_container() && value.is_container()) {
      if (old->is_map() != value.is_map()) {
        fail(ErrorKind::config, "{}: {}: cannot merge {} with {}", value.location().text(), joined(below, "."),
             value.describe(), old->describe());
      }
      if (value.is_map()) {
        merge(root, below, value, new_keys);
        continue;
      }
    }
    *old = value;
  }
}

}  // namespace hexad::yaml
