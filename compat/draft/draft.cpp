#include "compat/draft/draft.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"

namespace hexad::compat {
namespace {

constexpr size_t kWidth = 120;

// A key or a text of the other file within a comment: it ends no line.
std::string quoted(const std::string& text) { return one_line(without_secrets(text)); }

// `text` in comments of at most kWidth columns, broken at blanks.
std::string comment_lines(const std::string& text, const std::string& indent) {
  std::string out, line = indent + "#";
  size_t words = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (words > 0 && line.size() + 1 + (end - at) > kWidth) out += line + '\n', line = indent + "#  ", words = 0;
    line += ' ' + text.substr(at, end - at);
    ++words;
    at = end + 1;
  }
  return out + line + '\n';
}

bool is_section(const yaml::Node& node) { return node.is_map() && !node.entries().empty(); }

// "key: value\n", or a key with a block of list elements below it.
std::string entry_yaml(const std::string& key, const yaml::Node& value) {
  return yaml::Node(yaml::Node::Map{{key, value}}).to_yaml();
}

std::string indented_by(size_t columns, const std::string& lines) {
  std::string out;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at) + 1;
    out += std::string(columns, ' ') + lines.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace

yaml::Node path_node(const std::string& file) {
  yaml::Node node(file);
  const bool home = file.starts_with("~/") && file.find("${") == std::string::npos;
  if (home) node.set_source("${oc.env:HOME}" + file.substr(1));
  return node;
}

void Draft::set(const std::string& path, yaml::Node::Value value, std::string comment) {
  root_.set(path, yaml::Node(std::move(value)));
  if (!comment.empty()) comments_[path] = std::move(comment);
}

void Draft::set_path(const std::string& path, const std::string& file, std::string comment) {
  const yaml::Node node = path_node(file);
  put(path, &node, std::move(comment));
}

void Draft::put(const std::string& path, const yaml::Node* value, std::string comment) {
  if (!value || value->is_null()) return;
  root_.set(path, *value);
  if (!comment.empty()) comments_[path] = std::move(comment);
}

void Draft::leave_out(const std::string& key, std::string why) {
  if (std::ranges::find(left_out_, key, &LeftOut::key) == left_out_.end()) left_out_.push_back({key, std::move(why)});
}

void Draft::write(const yaml::Node& map, const std::string& path, size_t indent, std::string& out) const {
  for (const auto& [key, value] : map.entries()) {
    const std::string at = path.empty() ? key : path + "." + key;
    const auto found = comments_.find(at);
    const std::string comment = found == comments_.end() ? "" : quoted(found->second);
    const std::string space(indent, ' ');
    if (is_section(value)) {
      if (!comment.empty()) out += comment_lines(comment, space);
      out += space + key + ":\n";
      write(value, at, indent + 2, out);
      continue;
    }
    const std::string lines = indented_by(indent, entry_yaml(key, value));
    const bool beside = !value.is_container() && lines.size() + 3 + comment.size() <= kWidth;
    if (!comment.empty() && !beside) out += comment_lines(comment, space);
    out += !comment.empty() && beside ? lines.substr(0, lines.size() - 1) + "  # " + comment + '\n' : lines;
  }
}

std::string Draft::text(const std::string& title) const {
  std::string out = comment_lines(quoted(title), "");
  if (!left_out_.empty()) out += "#\n# Not carried over:\n";
  for (const auto& [key, why] : left_out_) out += comment_lines(quoted(fmt::format("- {}: {}", key, why)), "");
  for (const auto& [key, value] : root_.entries()) {
    out += '\n';
    write(yaml::Node(yaml::Node::Map{{key, value}}), "", 0, out);
  }
  return out;
}

}  // namespace hexad::compat
