// A configuration of Hexad's that is being written for somebody who comes from another system.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::compat {

// A setting of the other system that the configuration does not carry, or carries as something near it.
struct LeftOut {
  std::string key;
  std::string why;
};

// A path of files as a value: `~/` at the beginning is the variable HOME, which no YAML file expands.
yaml::Node path_node(const std::string& file);

class Draft {
 public:
  // Sets the key at a dotted path of ours; sections come in the order in which they are first set. `comment` says how
  // the value was computed.
  void set(const std::string& path, yaml::Node::Value value, std::string comment = "");
  // The same of a path of files, in which `~/` at the beginning is written as ${oc.env:HOME}/.
  void set_path(const std::string& path, const std::string& file, std::string comment = "");
  // The same of a value of theirs; a null node sets nothing.
  void put(const std::string& path, const yaml::Node* value, std::string comment = "");
  // A key is told once: what is said first stays.
  void leave_out(const std::string& key, std::string why);

  const yaml::Node& root() const { return root_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }

  // YAML that reads back to root(): first `title`, then what is left out, then the keys with their comments.
  std::string text(const std::string& title) const;

 private:
  void write(const yaml::Node& map, const std::string& path, size_t indent, std::string& out) const;

  yaml::Node root_{yaml::Node::Map{}};
  std::map<std::string, std::string> comments_;  // by path
  std::vector<LeftOut> left_out_;
};

}  // namespace hexad::compat
