#include "lib/yaml/node.hpp"

#include <charconv>

#include <fmt/format.h>

namespace hexad::yaml {
namespace {

// Splits "a.b.c" at the first dot.
std::pair<std::string_view, std::string_view> split_head(std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

std::optional<size_t> list_index(std::string_view key) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return index;
}

const Node* Node::child(std::string_view key) const {
  if (!is_map()) return nullptr;
  for (const auto& [name, value] : entries()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Node* Node::child(std::string_view key) { return const_cast<Node*>(std::as_const(*this).child(key)); }

const Node* Node::find(std::string_view path) const {
  const Node* node = this;
  while (!path.empty()) {
    const auto [head, rest] = split_head(path);
    if (node->is_list()) {
      const std::optional<size_t> index = list_index(head);
      if (!index || *index >= node->items().size()) return nullptr;
      node = &node->items()[*index];
    } else {
      node = node->child(head);
      if (!node) return nullptr;
    }
    path = rest;
  }
  return node;
}

const Node& Node::nearest(std::string_view path) const {
  for (;;) {
    if (const Node* node = find(path)) return *node;
    const size_t dot = path.rfind('.');
    path = path.substr(0, dot == path.npos ? 0 : dot);
  }
}

Node* Node::find(std::string_view path) { return const_cast<Node*>(std::as_const(*this).find(path)); }

bool Node::has(std::string_view path) const {
  const Node* node = find(path);
  return node && !node->is_null();
}

void Node::set(std::string_view path, Node value) {
  Node* node = this;
  while (!path.empty()) {
    const auto [head, rest] = split_head(path);
    if (!node->is_map()) node->set_value(Map{});
    Node* next = node->child(head);
    if (!next) next = &node->entries().emplace_back(std::string(head), Node({}, value.location())).second;
    node = next;
    path = rest;
  }
  *node = std::move(value);
}

bool same_value(const Node& a, const Node& b) {
  if (a.value().index() != b.value().index()) return false;
  if (a.is_list()) {
    return std::ranges::equal(a.items(), b.items(), same_value);
  }
  if (a.is_map()) {
    return std::ranges::equal(a.entries(), b.entries(), [](const auto& x, const auto& y) {
      return x.first == y.first && same_value(x.second, y.second);
    });
  }
  if (a.is_double()) {
    const double x = std::get<double>(a.value()), y = std::get<double>(b.value());
    return x == y || (x != x && y != y);
  }
  if (a.is_bool()) return std::get<bool>(a.value()) == std::get<bool>(b.value());
  if (a.is_int()) return std::get<int64_t>(a.value()) == std::get<int64_t>(b.value());
  if (a.is_string()) return std::get<std::string>(a.value()) == std::get<std::string>(b.value());
  return true;
}

std::string Node::describe() const {
  if (is_null()) return "null";
  if (is_bool()) return std::get<bool>(value_) ? "bool true" : "bool false";
  if (is_int()) return fmt::format("int {}", std::get<int64_t>(value_));
  if (is_double()) return fmt::format("float {}", python_float(std::get<double>(value_)));
  if (is_list()) return fmt::format("a list of {}", items().size());
  if (is_map()) return "a mapping";
  return fmt::format("text '{}'", std::get<std::string>(value_));
}

std::string Location::text() const { return line > 0 ? fmt::format("{}:{}:{}", file, line, column) : file; }

}  // namespace hexad::yaml
