// Typed access with errors that say where, which key, what was got and what was wanted.
#include <cmath>

#include "lib/base/error.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::yaml {
namespace {

[[noreturn]] void wrong_type(const Node& node, std::string_view path, std::string_view wanted) {
  fail(ErrorKind::config, "{}: {}: got {}, wanted {}", node.location().text(), path.empty() ? "value" : path,
       node.describe(), wanted);
}

std::string element_path(std::string_view path, size_t index) {
  return path.empty() ? std::to_string(index) : fmt::format("{}.{}", path, index);
}

template <typename T>
std::optional<T> optionally(const Node& node, std::string_view path, T (Node::*get)(std::string_view) const) {
  const Node* found = node.find(path);
  if (!found || found->is_null()) return std::nullopt;
  return (node.*get)(path);
}

}  // namespace

const Node& Node::at(std::string_view path) const {
  const Node* node = find(path);
  if (!node) fail(ErrorKind::config, "{}: key {} is missing", location_.text(), path);
  return *node;
}

bool Node::as_bool(std::string_view path) const {
  const Node& node = at(path);
  if (!node.is_bool()) wrong_type(node, path, "true or false");
  return std::get<bool>(node.value_);
}

int64_t Node::as_int(std::string_view path) const {
  const Node& node = at(path);
  if (node.is_int()) return std::get<int64_t>(node.value_);
  if (node.is_double()) {
    const double value = std::get<double>(node.value_);
    if (std::trunc(value) == value && std::abs(value) < 9e15) return static_cast<int64_t>(value);
  }
  wrong_type(node, path, "an integer");
}

double Node::as_double(std::string_view path) const {
  const Node& node = at(path);
  if (node.is_double()) return std::get<double>(node.value_);
  if (node.is_int()) return static_cast<double>(std::get<int64_t>(node.value_));
  wrong_type(node, path, "a number");
}

const std::string& Node::as_string(std::string_view path) const {
  const Node& node = at(path);
  if (!node.is_string()) wrong_type(node, path, "text");
  return std::get<std::string>(node.value_);
}

std::vector<std::string> Node::as_strings(std::string_view path) const {
  const Node& node = at(path);
  if (!node.is_list()) wrong_type(node, path, "a list of texts");
  std::vector<std::string> result;
  for (size_t i = 0; i < node.items().size(); ++i) result.push_back(as_string(element_path(path, i)));
  return result;
}

std::vector<int64_t> Node::as_ints(std::string_view path) const {
  const Node& node = at(path);
  if (!node.is_list()) wrong_type(node, path, "a list of integers");
  std::vector<int64_t> result;
  for (size_t i = 0; i < node.items().size(); ++i) result.push_back(as_int(element_path(path, i)));
  return result;
}

std::vector<double> Node::as_doubles(std::string_view path) const {
  const Node& node = at(path);
  if (!node.is_list()) wrong_type(node, path, "a list of numbers");
  std::vector<double> result;
  for (size_t i = 0; i < node.items().size(); ++i) result.push_back(as_double(element_path(path, i)));
  return result;
}

std::optional<bool> Node::optional_bool(std::string_view path) const { return optionally(*this, path, &Node::as_bool); }
std::optional<int64_t> Node::optional_int(std::string_view path) const {
  return optionally(*this, path, &Node::as_int);
}
std::optional<double> Node::optional_double(std::string_view path) const {
  return optionally(*this, path, &Node::as_double);
}
std::optional<std::string> Node::optional_string(std::string_view path) const {
  if (!has(path)) return std::nullopt;
  return as_string(path);
}

}  // namespace hexad::yaml
