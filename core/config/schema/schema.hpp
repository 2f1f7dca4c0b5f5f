// Every configuration key: its type, default, range, meaning, and what becomes of it here.
#pragma once
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::config {

// The kinds of value that a key takes; combined with |.
enum Kinds : unsigned {
  kBool = 1,
  kInt = 2,
  kFloat = 4,  // integers too
  kText = 8,
  kList = 16,
  kMap = 32,
  kNull = 64,
  kAny = 127,
};
constexpr Kinds operator|(Kinds a, Kinds b) {
  return static_cast<Kinds>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

enum class Status {
  effective,    // does what it says
  accepted,     // read, without effect on this engine itself: `note` says what it means here
  unavailable,  // belongs to a feature that is not built: any value but the off ones is an error; `note` names the
                // feature
  dormant,      // a detail of such a feature, read when the feature is
};

struct Key {
  std::string path;  // dotted; the index of a list element is no part of it; `*` stands for any one name
  Kinds kinds = kAny;
  std::string default_yaml;  // as YAML, interpolations included; empty: none
  std::string meaning;
  Status status = Status::effective;
  std::string note;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool minimum_excluded = false;
  Kinds element_kinds = kAny;          // of a list
  std::vector<std::string> choices;    // texts that it takes; empty: any
  std::vector<std::string> not_built;  // texts that NeMo-RL takes and that are not available here
  std::vector<std::string> off;        // unavailable: as YAML, the values that leave the feature off
  std::vector<std::string> synonyms;   // texts of NeMo-RL's that are read as `synonym_of` (load/synonyms.hpp)
  std::string synonym_of;
  std::string synonym_note;  // why
  bool open = false;         // a map whose keys are free, but for those that are declared below it
  Kinds value_kinds = kAny;  // of the free keys of an open map
  bool filled = true;        // an absent effective key gets its default
  // Of a plugin's keys (sdk/CONFIG.md); `default_yaml` is what is taken where these give nothing.
  std::vector<std::string> first_of;  // the default is the value of the first of these keys that is there
  std::string model_member;           // or that of this member of the model's config.json
  std::string automatic;              // how an absent value is chosen; then it stays absent
  bool optional = false;              // a map: keys below it get defaults only where it is written
  std::string detail_of;              // dormant: the key that switches the feature on
  std::string stands_for;             // an open map: its keys count as those of this section
  std::vector<std::string> renamed_from;
  bool for_backend = false;         // the backend alone reads it
  std::string plugin, plugin_file;  // whose key it is, and its manifest; empty: the engine's
};

// What another system calls a setting of ours.
struct OtherName {
  std::string_view system;     // "TRL"
  std::string_view name;       // there, a last word or a whole path; "trainer.": all that has no row of its own there
  std::string_view key;        // of the schema; of GRPO where each algorithm has one of its own; empty: there is none
  std::string_view note = {};  // where the value is another one; without a key what there is instead
};

// The keys in the order in which they were added, which is that of the reference page. A copy shares the keys: there
// are hundreds, and the schema of a run is core's with a few more.
class Schema {
 public:
  // Sets one property of the key that was added last, so that a key is one readable statement.
  class Entry {
   public:
    explicit Entry(Key& key) : key_(key) {}
    Entry& at_least(double bound) { return key_.minimum = bound, *this; }
    Entry& above(double bound) { return key_.minimum = bound, key_.minimum_excluded = true, *this; }
    Entry& at_most(double bound) { return key_.maximum = bound, *this; }
    Entry& one_of(std::vector<std::string> texts) { return key_.choices = std::move(texts), *this; }
    Entry& not_built(std::vector<std::string> texts) { return key_.not_built = std::move(texts), *this; }
    Entry& elements(Kinds kinds) { return key_.element_kinds = kinds, *this; }
    // Texts of NeMo-RL's that mean another one here; `note` says why.
    Entry& read_as(std::string text, std::vector<std::string> synonyms, std::string note);
    Entry& for_backend() { return key_.for_backend = true, *this; }
    Entry& open() { return key_.open = true, *this; }
    Entry& not_filled() { return key_.filled = false, *this; }
    // Of a key below a section with another status: a plugin reads it, and knows its default.
    Entry& effective() { return key_.status = Status::effective, key_.filled = false, *this; }
    // The key is read and has no effect; `note` says what that means for the user.
    Entry& accepted(std::string note);
    // The key switches on a feature that is not built, unless its value is one of `off` (YAML).
    Entry& unavailable(std::string feature, std::vector<std::string> off = {"false", "null"});
    Entry& dormant() { return key_.status = Status::dormant, *this; }

   private:
    Key& key_;
  };

  // Makes room for so many keys.
  void reserve(size_t keys) { keys_.reserve(keys), index_.reserve(keys); }
  // Adds a key. `default_yaml` is what it is when absent ("" if that has no value).
  Entry add(std::string path, Kinds kinds, std::string default_yaml, std::string meaning);
  // Adds a whole key; one that is there under its path is replaced.
  void put(Key key);
  // Adds a mapping; keys below it that are added later take over its status, except from `effective`.
  Entry section(std::string path, std::string meaning, Kinds kinds = kMap);

  // All keys, for a loop. A class of ours: clang 14 does not compile the views of <ranges>.
  class KeyRange {
   public:
    struct Iterator {
      std::vector<std::shared_ptr<const Key>>::const_iterator at;
      const Key& operator*() const { return **at; }
      Iterator& operator++() { return ++at, *this; }
      bool operator==(const Iterator& other) const { return at == other.at; }
    };
    explicit KeyRange(const std::vector<std::shared_ptr<const Key>>& keys) : keys_(keys) {}
    Iterator begin() const { return {keys_.begin()}; }
    Iterator end() const { return {keys_.end()}; }

   private:
    const std::vector<std::shared_ptr<const Key>>& keys_;
  };
  KeyRange keys() const { return KeyRange(keys_); }
  // The key at a path (list indexes left out), or null.
  const Key* find(std::string_view path) const;
  // Names for those who type them; of static storage.
  void know(std::span<const OtherName> names) { names_ = names; }
  // Of a path, the section that it is in, or its last word; null for what no other system has.
  const OtherName* other_name(std::string_view path) const;
  // True if the path lies inside a map with free keys.
  bool is_free(std::string_view path) const;
  // The paths of the keys directly below a path; none of them has a `*`.
  std::vector<std::string> children(std::string_view path) const;

 private:
  struct Place {
    std::string_view path;  // of the key itself
    size_t key;             // the first with this path
  };
  std::vector<Place>::const_iterator place_of(std::string_view path) const;
  void append(std::shared_ptr<const Key> key);

  std::vector<std::shared_ptr<const Key>> keys_;
  std::vector<Place> index_;      // in the order of the paths
  std::vector<size_t> patterns_;  // keys whose path has a *
  std::span<const OtherName> names_;
};

// The keys of the engine itself.
const Schema& core_schema();

// "policy.scheduler.0.kwargs" without its list indexes: "policy.scheduler.kwargs".
std::string schema_path(std::string_view path);

}  // namespace hexad::config
