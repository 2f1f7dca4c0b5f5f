#include "core/config/meant_key.hpp"

#include <algorithm>

#include "core/config/algorithm.hpp"
#include "lib/base/text.hpp"

namespace hexad::config {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMostKeys = 4;       // more keys than these tell nothing
constexpr size_t kShortestBegin = 3;  // letters of a word that others may begin with

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string key_below(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

// A key as far as it leads: `above` is there, `name` is not, `rest` stands behind it.
struct Break {
  std::string above, name, rest;
  const yaml::Node* at = nullptr;  // what stands at `above`; null: nothing yet
  Names beside;              // names of the keys there

  std::string missing() const { return key_below(above, name); }
};

Break break_of(const std::string& key, const yaml::Node& root, const Schema* schema) {
  Break b;
  b.at = &root;
  for (std::string left = key;;) {
    const size_t dot = left.find('.');
    b.name = left.substr(0, dot);
    b.rest = dot == std::string::npos ? "" : left.substr(dot + 1);
    b.beside.clear();
    if (b.at && b.at->is_map()) {
      for (const auto& [name, value] : b.at->entries()) {
        if (!schema || takes(*schema, key_below(b.above, name))) b.beside.push_back(name);
      }
    }
    if (schema) {
      for (const std::string& path : schema->children(schema_path(b.above))) b.beside.push_back(last_name(path));
    }
    const yaml::Node* next = b.at ? b.at->find(b.name) : nullptr;
    const bool list = b.at && b.at->is_list() && !next;
    if (list || b.rest.empty() || (!next && std::ranges::find(b.beside, b.name) == b.beside.end())) return b;
    b.above = b.missing();
    b.at = next;
    left = b.rest;
  }
}

class Search {
 public:
  Search(const std::string& key, const yaml::Node& root, const Schema& schema)
      : key_(key), word_(last_name(key)), schema_(schema), algorithm_(name_of(algorithm_of(root))) {
    for (const char* block : {"grpo", "sft", "dpo", "rm"}) {
      if (algorithm_ != block) elsewhere_.push_back(std::string(block) + ".");
    }
  }

  // Keys beside it that begin with the word.
  std::string beginning_beside(const Break& b) const {
    if (b.above.empty() || !b.rest.empty() || b.name.size() < kShortestBegin) return "";
    Names found;
    for (const std::string& name : b.beside) {
      if (name != b.name && name.starts_with(b.name)) found.push_back(key_below(b.above, name));
    }
    return one_of(found);
  }

  std::string of_another_system() const {
    const OtherName* other = schema_.other_name(key_);
    if (!other) return "";
    const std::string& there = other->name == word_ ? word_ : key_;
    if (other->key.empty()) return fmt::format("{}'s {}: {}", other->system, there, other->note);
    std::string key(other->key);
    // Where each algorithm has one of its own, that of this one.
    const std::string own = algorithm_ + "." + last_name(key);
    if (algorithm_ != "grpo" && schema_.find(own)) key = own;
    if (!takes(schema_, key)) return "";
    if (last_name(key) == word_) return one_of({key});
    return fmt::format("{}'s {} is {}{}", other->system, there, key,
                       other->note.empty() ? "" : fmt::format(" ({})", other->note));
  }

  // "generation.top_p" is the end of policy.generation.top_p.
  std::string ending() const {
    return key_.find('.') == std::string::npos
               ? ""
               : keys_with([&](const std::string& path) { return path.ends_with("." + key_); });
  }
  std::string named() const {
    return keys_with([&](const std::string& path) { return last_name(path) == word_; });
  }
  std::string beginning() const {
    if (word_.size() < kShortestBegin) return "";
    return keys_with([&](const std::string& path) { return last_name(path).starts_with(word_); });
  }

  static std::string one_of(const Names& keys) {
    if (keys.empty() || keys.size() > kMostKeys) return "";
    const std::string last = keys.back();
    const Names others(keys.begin(), keys.end() - 1);
    return fmt::format("did you mean {}{}{}?", joined(others), others.empty() ? "" : " or ", last);
  }

 private:
  // Those that have an effect in this run.
  template <typename Matches>
  std::string keys_with(const Matches& matches) const {
    Names found;
    for (const Key& key : schema_.keys()) {
      const bool here =
          key.status == Status::effective && key.path != key_ && key.path.find('*') == std::string::npos &&
          (key.plugin.empty() || key.filled) &&
          std::ranges::none_of(elsewhere_, [&](const std::string& block) { return key.path.starts_with(block); });
      if (here && matches(key.path)) found.push_back(key.path);
    }
    return one_of(found);
  }

  const std::string& key_;
  const std::string word_;
  const Schema& schema_;
  const std::string algorithm_;
  Names elsewhere_;  // blocks of other algorithms
};

}  // namespace

bool takes(const Schema& schema, const std::string& key) {
  const std::string path = schema_path(key);
  return schema.find(path) || schema.is_free(path);
}

MeantKey meant_key(const std::string& key, const yaml::Node& root, const Schema* schema) {
  const Break b = break_of(key, root, schema);
  if (b.at && b.at->is_list()) return {b.missing(), "", b.above};
  const std::optional<std::string> near = nearest(b.name, b.beside);
  const std::string corrected = near ? key_below(b.above, *near) : "";
  if (schema) {
    const Search search(key, root, *schema);
    if (std::string hint = search.beginning_beside(b); !hint.empty()) return {b.missing(), hint, ""};
    if (near && !b.rest.empty() && schema->find(schema_path(key_below(corrected, b.rest))))
      return {b.missing(), Search::one_of({corrected}), ""};
    for (const std::string& hint : {search.of_another_system(), search.ending(), search.named(), search.beginning()}) {
      if (!hint.empty()) return {key, hint, ""};
    }
  }
  return {b.missing(), near ? Search::one_of({corrected}) : "", ""};
}

}  // namespace hexad::config
