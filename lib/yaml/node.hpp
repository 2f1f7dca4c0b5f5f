// A value of a configuration: what a YAML file and its overrides come to, with the place where each value was written.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::yaml {

// A position in a YAML file (line and column count from 1), or, with line 0, a named origin: an override of the
// command line ("override grpo.seed=1") or the schema ("default").
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  // "configs/a.yaml:3:7", or the bare origin.
  std::string text() const;
};

// Of a value in a file, of an interpolation, of an override: what reads them is recursive.
constexpr int kDeepestNesting = 100;

// Null, bool, 64-bit integer, double, text, list, or map with keys in written order. A value type: copies are deep.
// Paths are dotted keys from this node ("policy.generation.temperature"); a number selects a list element
// ("milestones.0").
class Node {
 public:
  using List = std::vector<Node>;
  using Map = std::vector<std::pair<std::string, Node>>;
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string, List, Map>;

  Node() = default;
  explicit Node(Value value, Location location = {}) : value_(std::move(value)), location_(std::move(location)) {}

  const Location& location() const { return location_; }
  const Value& value() const { return value_; }
  void set_value(Value value) { value_ = std::move(value), source_.clear(); }
  void set_location(Location location) { location_ = std::move(location); }
  // Of a value that came from the environment: the interpolation that gives it ("Bearer ${oc.env:TOKEN}"), which
  // to_yaml() writes in its place. Else empty. kMasked (base/said/secret.hpp) where none can be written.
  const std::string& source() const { return source_; }
  void set_source(std::string source) { source_ = std::move(source); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_map() const { return std::holds_alternative<Map>(value_); }
  bool is_container() const { return is_list() || is_map(); }
  // The mandatory value "???" that nothing has set yet.
  bool is_missing() const { return is_string() && as_string() == "???"; }

  // Elements of a list, entries of a map; the caller has looked at the kind.
  const List& items() const { return std::get<List>(value_); }
  List& items() { return std::get<List>(value_); }
  const Map& entries() const { return std::get<Map>(value_); }
  Map& entries() { return std::get<Map>(value_); }

  // The entry of this map under exactly this key (dots are part of it); null if this is no map or has no such key.
  const Node* child(std::string_view key) const;
  Node* child(std::string_view key);

  // The node at a path, or null if there is none. The empty path is this node.
  const Node* find(std::string_view path) const;
  // The node at the path or, where it is absent, the nearest above it that is there: this one at the last.
  const Node& nearest(std::string_view path) const;
  Node* find(std::string_view path);
  // True if the path exists and is not null.
  bool has(std::string_view path) const;
  // Sets the value at a path, making the maps on the way.
  void set(std::string_view path, Node value);

  // The value at a path. A missing key or another type is an Error(config) that names place, key, got and wanted.
  // as_int takes 2.0 for 2; as_double takes integers.
  const Node& at(std::string_view path) const;
  bool as_bool(std::string_view path = "") const;
  int64_t as_int(std::string_view path = "") const;
  double as_double(std::string_view path = "") const;
  const std::string& as_string(std::string_view path = "") const;
  std::vector<std::string> as_strings(std::string_view path = "") const;
  std::vector<int64_t> as_ints(std::string_view path = "") const;
  std::vector<double> as_doubles(std::string_view path = "") const;

  // The same, but nothing where the key is missing or null.
  std::optional<bool> optional_bool(std::string_view path) const;
  std::optional<int64_t> optional_int(std::string_view path) const;
  std::optional<double> optional_double(std::string_view path) const;
  std::optional<std::string> optional_string(std::string_view path) const;

  // inf and nan stay numbers, so that dump() writes them as null.
  nlohmann::ordered_json to_json() const;
  // Block-style YAML 1.1 that load() reads back to the same values, those from the environment anew.
  std::string to_yaml() const;

  // "int 5", "text 'abc'", "null": what a message says was got.
  std::string describe() const;

 private:
  Value value_;
  Location location_;
  std::string source_;
};

// The number that a key of a list is; nothing if the key is none.
std::optional<size_t> list_index(std::string_view key);

// Same kinds and values, locations aside; 1 and 1.0 differ.
bool same_value(const Node& a, const Node& b);

// Values as Python's str() writes them: what OmegaConf puts where `${}` stands inside text.
// repr(float): shortest digits that round-trip, "1e-08", "0.5", "3.0", "inf".
std::string python_float(double value);

// str(value): None, True, 12, 0.5, text as it is, ['a', 1], {'k': 'v'}.
std::string python_str(const Node& value);

}  // namespace hexad::yaml
