#include "lib/yaml/secret.hpp"

#include <string_view>

#include "lib/base/error.hpp"
#include "lib/base/said/secret.hpp"

namespace hexad::yaml {
namespace {

// Of a secret that is looked for in values that are none: a shorter one may be a part of a path.
constexpr size_t kLeastInValue = 8;

// A whole number may be a password; under "..._token" it is one of a model's.
bool can_be_secret(const Node& value, std::string_view key) {
  return value.is_string() ? !value.as_string().empty() && !value.is_missing()
                           : value.is_int() && !key.ends_with("token");
}

// A node's place in the tree; its text is made where it is asked for, which a message alone does.
struct Place {
  const Place* above = nullptr;
  std::string_view key;  // of a map; empty: `index` of a list
  size_t index = 0;

  std::string text() const {
    const std::string name = key.empty() ? std::to_string(index) : std::string(key);
    return above && above->above ? above->text() + "." + name : name;
  }
};

// Visits what is no container, `secret`: by the name that it stands under. Values below "..._env" are names of
// variables.
void visit(const Node& node, const Place& place, bool secret, bool below_names, const auto& take) {
  if (!node.source().empty() || !node.is_container()) return take(node, place, secret);
  if (node.is_list()) {
    for (size_t i = 0; i < node.items().size(); ++i) visit(node.items()[i], {&place, {}, i}, secret, below_names, take);
    return;
  }
  for (const auto& [key, value] : node.entries()) {
    const bool named = !below_names && (value.is_list() || can_be_secret(value, key)) && names_secret(key);
    visit(value, {&place, key}, named, key.ends_with("_env"), take);
  }
}

// visit() in a tree that is changed. Written apart: paths are of no use here.
void mask(Node& node, bool secret, bool below_names) {
  if (!node.source().empty()) {
    Node written(node.source() == kMasked ? std::string(kMasked) : node.source(), node.location());
    if (node.source() != kMasked) written.set_source(node.source());
    node = std::move(written);
  } else if (node.is_list()) {
    for (Node& item : node.items()) mask(item, secret, below_names);
  } else if (node.is_map()) {
    for (auto& [key, value] : node.entries()) {
      const bool named = !below_names && (value.is_list() || can_be_secret(value, key)) && names_secret(key);
      mask(value, named, key.ends_with("_env"));
    }
  } else if (secret && (node.is_string() || node.is_int())) {
    node = Node(std::string(kMasked), node.location());
  } else if (node.is_string()) {
    std::string text = node.as_string();
    if (const size_t at = header_secret(text); at != text.npos) text.replace(at, text.npos, kMasked);
    node = Node(hexad::without_secrets(text, kLeastInValue), node.location());
  }
}

// Of "Bearer abc" abc too: others write it without its scheme.
void keep(std::string_view secret) {
  keep_secret(secret);
  if (const size_t at = header_secret(secret); at != secret.npos) keep_secret(secret.substr(at));
}

}  // namespace

Node without_secrets(const Node& root) {
  Node written = root;
  mask(written, false, false);
  return written;
}

void keep_secrets(const Node& root) {
  visit(root, {}, false, false, [](const Node& node, const Place&, bool secret) {
    if (secret && (node.is_string() || node.is_int())) return keep(python_str(node));
    if (!node.is_string()) return;
    const size_t at = header_secret(node.as_string());
    if (at != std::string::npos) keep(std::string_view(node.as_string()).substr(at));
  });
}

void refuse_masked(const Node& root) {
  visit(root, {}, false, false, [&](const Node& node, const Place& at, bool secret) {
    if (!node.is_string()) return;
    const std::string& text = node.as_string();
    const bool in_url = text.find("://") != text.npos && text.find(std::string(kMasked) + "@") != text.npos;
    const size_t header = header_secret(text);
    const bool in_header = header != text.npos && std::string_view(text).substr(header) == kMasked;
    if (!(secret && text == kMasked) && !in_url && !in_header) return;
    const std::string place = node.location().text(), path = at.text();
    fail(ErrorKind::config,
         "{}{}: here was a secret, which was left out when the configuration was written. Give it again: {}=..., or "
         "${{oc.env:NAME}} in the file, for what the environment has",
         place.empty() ? "" : place + ": ", path, path);
  });
}

}  // namespace hexad::yaml
