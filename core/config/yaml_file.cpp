#include "core/config/yaml_file.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/suggest.hpp"
#include "core/config/interpolation_grammar.hpp"
#include "core/config/yaml_scalar.hpp"
#include "core/config/yaml_strict.hpp"

namespace hexad::config {
namespace {

// Aliases can make a small file into a huge tree; no configuration comes near this many values.
constexpr size_t kMostValues = 1'000'000;
// A parent may be any path, /dev/zero too.
constexpr size_t kMostBytes = 8 << 20;

class YamlReader {
 public:
  explicit YamlReader(std::string name) : name_(std::move(name)) {}

  Node convert(const YAML::Node& yaml, int depth = 0) {
    const Location location = locate(yaml.Mark());
    if (depth > kDeepestNesting)
      fail(ErrorKind::config, "{}: nested more than {} deep", location.text(), kDeepestNesting);
    if (++values_ > kMostValues) fail(ErrorKind::config, "{}: more than {} values", location.text(), kMostValues);
    if (yaml.IsMap()) return convert_map(yaml, location, depth);
    if (yaml.IsSequence()) {
      check_collection_tag(yaml, "seq", location);
      Node::List items;
      for (const YAML::Node& item : yaml) items.push_back(convert(item, depth + 1));
      return Node(std::move(items), location);
    }
    return convert_scalar(yaml, location);
  }

  Location locate(const YAML::Mark& mark) const { return Location{name_, mark.line + 1, mark.column + 1}; }

 private:
  static bool is_plain(const YAML::Node& yaml) { return yaml.Tag() == "?" || yaml.Tag().empty(); }

  static bool is_merge_key(const YAML::Node& key) { return key.IsScalar() && is_plain(key) && key.Scalar() == "<<"; }

  static void check_collection_tag(const YAML::Node& yaml, const std::string& own, const Location& location) {
    const std::string tag = yaml.Tag();
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:" + own) return;
    fail(ErrorKind::config, "{}: tag {} is not supported here", location.text(), tag);
  }

  std::string key_text(const YAML::Node& key) const {
    const std::string where = locate(key.Mark()).text();
    if (!key.IsScalar() && !key.IsNull()) fail(ErrorKind::config, "{}: a key must be text", where);
    const Node value = convert_scalar(key, locate(key.Mark()));
    if (value.is_string()) return value.as_string();
    fail(ErrorKind::config, "{}: key '{}' is read as {}; quote it if the text is meant", where,
         key.IsNull() ? "null" : key.Scalar(), value.describe());
  }

  Node convert_scalar(const YAML::Node& yaml, const Location& location) const {
    if (yaml.IsNull()) return Node({}, location);
    const std::string tag = yaml.Tag();
    try {
      if (tag == "!") return text_node(yaml.Scalar(), location);
      if (!is_plain(yaml)) return Node(tagged_scalar(tag, yaml.Scalar()), location);
      Node::Value value = plain_scalar(yaml.Scalar());
      if (const std::string* text = std::get_if<std::string>(&value)) return text_node(*text, location);
      return Node(std::move(value), location);
    } catch (const Error& error) {
      fail(ErrorKind::config, "{}: {}", location.text(), error.what());
    }
  }

  static Node text_node(const std::string& text, const Location& location) {
    if (has_interpolation(text)) parse_interpolation(text);  // a malformed one is found where it is written
    return Node(text, location);
  }

  Node convert_map(const YAML::Node& yaml, const Location& location, int depth) {
    check_collection_tag(yaml, "map", location);
    Node result(Node::Map{}, location);
    for (const auto& pair : yaml) {
      if (is_merge_key(pair.first)) add_merged(pair.second, depth, result);
    }
    std::set<std::string> written;
    for (const auto& pair : yaml) {
      if (is_merge_key(pair.first)) continue;
      const std::string key = key_text(pair.first);
      if (!written.insert(key).second) {
        fail(ErrorKind::config, "{}: key {} is written twice in one mapping", locate(pair.first.Mark()).text(), key);
      }
      put(result, key, convert(pair.second, depth + 1), locate(pair.first.Mark()));
    }
    return result;
  }

  // `<<: *a` or `<<: [*a, *b]`: what the earlier one sets wins, and a key of the mapping's own wins over all.
  void add_merged(const YAML::Node& source, int depth, Node& result) {
    const Node merged = convert(source, depth + 1);
    const Node::List one = {merged};
    const Node::List& sources = merged.is_list() ? merged.items() : one;
    for (auto map = sources.rbegin(); map != sources.rend(); ++map) {
      if (!map->is_map()) {
        fail(ErrorKind::config, "{}: << takes a mapping or a list of mappings, got {}", locate(source.Mark()).text(),
             map->describe());
      }
      for (const auto& [key, value] : map->entries()) put(result, key, value, value.location());
    }
  }

  static void put(Node& map, const std::string& key, Node value, const Location& location) {
    value.set_location(location);  // that of its key: what a message is about
    if (Node* old = map.child(key)) {
      *old = std::move(value);
    } else {
      map.entries().emplace_back(key, std::move(value));
    }
  }

  std::string name_;
  size_t values_ = 0;
};

// Where the last document begins.
class DocumentStart : public YAML::EventHandler {
 public:
  YAML::Mark mark;

  void OnDocumentStart(const YAML::Mark& at) override { mark = at; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Not YAML::LoadAll, which makes documents without end of a text that it cannot go on in (", a").
void require_one_document(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return;
  fail(ErrorKind::config, "{}:{}:{}: what begins here is no part of the one YAML document that a file may hold", name,
       start.mark.line + 1, start.mark.column + 1);
}

YAML::Node parse_document(const std::string& text, const std::string& name) {
  try {
    require_one_document(text, name);
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    fail(ErrorKind::config, "{}:{}:{}: {}", name, error.mark.line + 1, error.mark.column + 1, error.msg);
  }
}

}  // namespace

Node read_yaml_text(const std::string& text, const std::string& name) {
  check_strict_yaml(text, name);
  const YAML::Node document = parse_document(text, name);
  if (document.IsNull()) return Node(Node::Map{}, Location{name, 1, 1});
  Node root = YamlReader(name).convert(document);
  if (root.is_map()) return root;
  // OmegaConf reads a document that is one text once more, as YAML, and makes plain text a key without a value.
  if (root.is_string()) {
    const std::string& inner = root.as_string();
    if (inner == text || parse_document(inner, name).IsScalar())
      return Node(Node::Map{{inner, Node({}, root.location())}}, root.location());
    return read_yaml_text(inner, name);
  }
  fail(ErrorKind::config, "{}: the root must be a mapping, got {}", root.location().text(), root.describe());
}

namespace {

// Of the YAML files beside it.
std::string near_file(const std::filesystem::path& path) {
  std::vector<std::string> beside;
  std::error_code unreadable;
  const std::filesystem::path folder = path.parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, unreadable)) {
    if (entry.path().extension() == ".yaml" || entry.path().extension() == ".yml")
      beside.push_back(entry.path().filename().string());
  }
  std::ranges::sort(beside);
  const std::optional<std::string> near = nearest(path.filename().string(), beside);
  return near ? fmt::format(", did you mean {}?", (folder / *near).string()) : "";
}

}  // namespace

Node read_yaml_file(const std::filesystem::path& path) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable))
    fail(ErrorKind::config, "{}: is a directory, wanted a YAML file", path.string());
  if (!std::filesystem::exists(path, unreadable) && !unreadable)
    fail(ErrorKind::config, "{}: no such file{}", path.string(), near_file(path));
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::config, "cannot read the configuration file {}", path.string());
  std::string text;
  std::array<char, 1 << 14> part;
  do {
    in.read(part.data(), part.size());
    text.append(part.data(), static_cast<size_t>(in.gcount()));
  } while (in && text.size() <= kMostBytes);
  if (text.size() > kMostBytes)
    fail(ErrorKind::config, "{}: more than {} bytes, which no configuration has", path.string(), kMostBytes);
  return read_yaml_text(text, path.string());
}

}  // namespace hexad::config
