#include "lib/yaml/file.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <sstream>

#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/interpolation_grammar.hpp"
#include "lib/yaml/scalar.hpp"

namespace hexad::yaml {
namespace {

// Aliases can make a small file into a huge tree; no configuration comes near this many values.
constexpr size_t kMostValues = 1'000'000;
constexpr size_t kMostText = size_t{64} << 20;  // bytes, each text counted wherever it comes to stand
// A parent may be any path, /dev/zero too.
constexpr size_t kMostBytes = 8 << 20;

// A part of a document. An alias is the part that its anchor names, so that parts may be shared, and hold themselves.
struct YamlNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  YAML::Mark mark;
  std::string tag;                     // as yaml-cpp resolves it; "?": a plain scalar without one, "!": a quoted one
  std::string text;                    // of a scalar
  std::vector<const YamlNode*> items;  // of a map: key, value, key, value, ...
};

// A document from the parser's events. (YAML::Load reads a text a second time where somebody wants to know, as here,
// that nothing follows its first document.)
class Document : public YAML::EventHandler {
 public:
  Document() = default;
  Document(Document&&) = default;
  Document(const Document&) = delete;  // its parts point to each other

  // Null: the document is empty.
  const YamlNode* root() const { return root_; }
  YAML::Mark start;

  void OnDocumentStart(const YAML::Mark& at) override { start = at; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add({Kind::null, mark, "", "", {}}, anchor); }
  void OnAlias(const YAML::Mark&, YAML::anchor_t anchor) override { place(anchors_.at(anchor)); }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    const auto [first, is_new] = anchor_lines_.emplace(name, mark.line + 1);
    if (is_new) return;
    throw YAML::Exception(mark, fmt::format("anchor &{} is given twice, first in line {}", name, first->second));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    add({Kind::scalar, mark, tag, text, {}}, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back(add({Kind::list, mark, tag, "", {}}, anchor));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back(add({Kind::map, mark, tag, "", {}}, anchor));
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  using Kind = YamlNode::Kind;

  YamlNode* add(YamlNode node, YAML::anchor_t anchor) {
    YamlNode* added = &nodes_.emplace_back(std::move(node));
    if (anchor != 0) anchors_[anchor] = added;
    place(added);
    return added;
  }
  void place(const YamlNode* node) {
    if (open_.empty())
      root_ = node;
    else
      open_.back()->items.push_back(node);
  }

  std::deque<YamlNode> nodes_;  // addresses stay
  std::map<YAML::anchor_t, const YamlNode*> anchors_;
  std::map<std::string, int> anchor_lines_;  // by name
  std::vector<YamlNode*> open_;
  const YamlNode* root_ = nullptr;
};

class YamlReader {
 public:
  explicit YamlReader(std::string name) : name_(std::move(name)) {}

  Node convert(const YamlNode& yaml, int depth = 0) {
    const Location location = locate(yaml.mark);
    if (depth > kDeepestNesting)
      fail(ErrorKind::config, "{}: nested more than {} deep", location.text(), kDeepestNesting);
    if (++values_ > kMostValues) fail(ErrorKind::config, "{}: more than {} values", location.text(), kMostValues);
    count(yaml.text, location);
    if (yaml.kind == Kind::map) return convert_map(yaml, location, depth);
    if (yaml.kind == Kind::list) {
      check_collection_tag(yaml, "seq", location);
      Node::List items;
      for (const YamlNode* item : yaml.items) items.push_back(convert(*item, depth + 1));
      return Node(std::move(items), location);
    }
    return convert_scalar(yaml, location);
  }

  Location locate(const YAML::Mark& mark) const { return Location{name_, mark.line + 1, mark.column + 1}; }

 private:
  using Kind = YamlNode::Kind;

  void count(const std::string& text, const Location& location) {
    if ((bytes_ += text.size()) > kMostText)
      fail(ErrorKind::config, "{}: aliases make more than {} MiB of text", location.text(), kMostText >> 20);
  }

  static bool is_plain(const YamlNode& yaml) { return yaml.tag == "?" || yaml.tag.empty(); }

  static bool is_merge_key(const YamlNode& key) {
    return key.kind == Kind::scalar && is_plain(key) && key.text == "<<";
  }

  static void check_collection_tag(const YamlNode& yaml, const std::string& own, const Location& location) {
    const std::string& tag = yaml.tag;
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:" + own) return;
    fail(ErrorKind::config, "{}: tag {} is not supported here", location.text(), tag);
  }

  std::string key_text(const YamlNode& key) const {
    const Location location = locate(key.mark);
    if (key.kind != Kind::scalar && key.kind != Kind::null)
      fail(ErrorKind::config, "{}: a key must be text", location.text());
    const Node value = convert_scalar(key, location);
    if (value.is_string()) return value.as_string();
    fail(ErrorKind::config, "{}: key '{}' is read as {}; quote it if the text is meant", location.text(),
         key.kind == Kind::null ? "null" : key.text, value.describe());
  }

  Node convert_scalar(const YamlNode& yaml, const Location& location) const {
    if (yaml.kind == Kind::null) return Node({}, location);
    try {
      if (yaml.tag == "!") return text_node(yaml.text, location);
      if (!is_plain(yaml)) return Node(tagged_scalar(yaml.tag, yaml.text), location);
      Node::Value value = plain_scalar(yaml.text);
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

  Node convert_map(const YamlNode& yaml, const Location& location, int depth) {
    check_collection_tag(yaml, "map", location);
    Node result(Node::Map{}, location);
    const auto each_pair = [&](const auto& visit) {
      for (size_t i = 0; i + 1 < yaml.items.size(); i += 2) visit(*yaml.items[i], *yaml.items[i + 1]);
    };
    each_pair([&](const YamlNode& key, const YamlNode& value) {
      if (is_merge_key(key)) add_merged(value, depth, result);
    });
    std::set<std::string> written;
    each_pair([&](const YamlNode& key, const YamlNode& value) {
      if (is_merge_key(key)) return;
      const std::string name = key_text(key);
      count(name, location);
      const Location at = locate(key.mark);
      if (!written.insert(name).second)
        fail(ErrorKind::config, "{}: key {} is written twice in one mapping", at.text(), name);
      put(result, name, convert(value, depth + 1), at);
    });
    return result;
  }

  // `<<: *a` or `<<: [*a, *b]`: what the earlier one sets wins, and a key of the mapping's own wins over all.
  void add_merged(const YamlNode& source, int depth, Node& result) {
    const Node merged = convert(source, depth + 1);
    const Node::List one = {merged};
    const Node::List& sources = merged.is_list() ? merged.items() : one;
    for (auto map = sources.rbegin(); map != sources.rend(); ++map) {
      if (!map->is_map()) {
        fail(ErrorKind::config, "{}: << takes a mapping or a list of mappings, got {}", locate(source.mark).text(),
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
  size_t values_ = 0, bytes_ = 0;
};

// Not YAML::LoadAll, which makes documents without end of a text that it cannot go on in (", a").
Document parse_document(const std::string& text, const std::string& name) {
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    Document first, next;
    if (!parser.HandleNextDocument(first) || !parser.HandleNextDocument(next)) return first;
    fail(ErrorKind::config, "{}:{}:{}: what begins here is no part of the one YAML document that a file may hold", name,
         next.start.line + 1, next.start.column + 1);
  } catch (const YAML::Exception& error) {
    fail(ErrorKind::config, "{}:{}:{}: {}", name, error.mark.line + 1, error.mark.column + 1, error.msg);
  }
}

bool is_null(const YamlNode* node) { return !node || node->kind == YamlNode::Kind::null; }

}  // namespace

Node read_text(const std::string& text, const std::string& name) {
  check_strict_yaml(text, name);
  const Document document = parse_document(text, name);
  if (is_null(document.root())) return Node(Node::Map{}, Location{name, 1, 1});
  Node root = YamlReader(name).convert(*document.root());
  if (root.is_map()) return root;
  // OmegaConf reads a document that is one text once more, as YAML, and makes plain text a key without a value.
  if (root.is_string()) {
    const std::string& inner = root.as_string();
    const auto is_text = [&] {
      const Document again = parse_document(inner, name);
      return again.root() && again.root()->kind == YamlNode::Kind::scalar;
    };
    if (inner == text || is_text()) return Node(Node::Map{{inner, Node({}, root.location())}}, root.location());
    return read_text(inner, name);
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

Node read_file(const std::filesystem::path& path) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable))
    fail(ErrorKind::config, "{}: is a directory, wanted a YAML file", path.string());
  if (!std::filesystem::exists(path, unreadable) && !unreadable)
    fail(ErrorKind::config, "{}: no such file{}", path.string(), near_file(path));
  InputFile in(path, [](const std::string& file, const char* what, int reason) {
    fail(ErrorKind::config, "the configuration file {} {}: {}", file, what, std::strerror(reason));
  });
  std::string text;
  std::array<char, 1 << 14> part;
  do {
    in.read(part.data(), part.size());
    text.append(part.data(), static_cast<size_t>(in.gcount()));
  } while (in && text.size() <= kMostBytes);
  if (text.size() > kMostBytes)
    fail(ErrorKind::config, "{}: more than {} bytes, which no configuration has", path.string(), kMostBytes);
  return read_text(text, path.string());
}

}  // namespace hexad::yaml
