#include "core/config/schema/schema.hpp"

#include <algorithm>

#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

bool is_index(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
}

// Takes the first name off a path that is not empty.
std::string_view take_name(std::string_view& path) {
  const size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  path = dot == path.npos ? std::string_view() : path.substr(dot + 1);
  return name;
}

bool matches(std::string_view pattern, std::string_view path) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = take_name(pattern), name = take_name(path);
    if (wanted != "*" && wanted != name) return false;
  }
  return pattern.empty() && path.empty();
}

std::string_view parent(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

}  // namespace

Schema::Entry& Schema::Entry::accepted(std::string note) {
  key_.status = Status::accepted;
  key_.note = std::move(note);
  return *this;
}

Schema::Entry& Schema::Entry::unavailable(std::string feature, std::vector<std::string> off) {
  key_.status = Status::unavailable;
  key_.note = std::move(feature);
  key_.off = std::move(off);
  return *this;
}

Schema::Entry& Schema::Entry::read_as(std::string text, std::vector<std::string> synonyms, std::string note) {
  key_.synonym_of = std::move(text);
  key_.synonyms = std::move(synonyms);
  key_.synonym_note = std::move(note);
  return *this;
}

Schema::Entry Schema::add(std::string path, Kinds kinds, std::string default_yaml, std::string meaning) {
  Key key;
  key.path = std::move(path);
  key.kinds = kinds;
  key.default_yaml = std::move(default_yaml);
  key.meaning = std::move(meaning);
  const Key* section = find(parent(key.path));
  if (section && section->status != Status::effective) {
    key.status = section->status == Status::unavailable ? Status::dormant : section->status;
  }
  const auto added = std::make_shared<Key>(std::move(key));
  append(added);
  return Entry(*added);
}

void Schema::put(Key key) {
  const auto found = place_of(key.path);
  if (found == index_.end() || found->path != key.path) return append(std::make_shared<const Key>(std::move(key)));
  const auto at = found->key;
  keys_[at] = std::make_shared<const Key>(std::move(key));
  index_[static_cast<size_t>(found - index_.begin())].path = keys_[at]->path;
}

void Schema::append(std::shared_ptr<const Key> key) {
  if (key->path.find('*') != key->path.npos) patterns_.push_back(keys_.size());
  const auto found = place_of(key->path);
  if (found == index_.end() || found->path != key->path) index_.insert(found, {key->path, keys_.size()});
  keys_.push_back(std::move(key));
}

std::vector<Schema::Place>::const_iterator Schema::place_of(std::string_view path) const {
  return std::ranges::lower_bound(index_, path, {}, &Place::path);
}

Schema::Entry Schema::section(std::string path, std::string meaning, Kinds kinds) {
  return add(std::move(path), kinds, "", std::move(meaning));
}

const Key* Schema::find(std::string_view path) const {
  if (const auto exact = place_of(path); exact != index_.end() && exact->path == path) return keys_[exact->key].get();
  const auto found = std::ranges::find_if(patterns_, [&](size_t i) { return matches(keys_[i]->path, path); });
  return found == patterns_.end() ? nullptr : keys_[*found].get();
}

const OtherName* Schema::other_name(std::string_view path) const {
  const OtherName *below = nullptr, *last = nullptr;
  for (const OtherName& other : names_) {
    if (other.name == path) return &other;
    if (!below && other.name.ends_with('.') && path.starts_with(other.name)) below = &other;
    if (!last && other.name == path.substr(path.rfind('.') + 1)) last = &other;
  }
  return below ? below : last;
}

bool Schema::is_free(std::string_view path) const {
  for (std::string_view above = parent(path); !above.empty(); above = parent(above)) {
    const Key* key = find(above);
    if (key) return key->open;
  }
  return path.starts_with('_');  // private top-level keys, there to be referred to
}

std::vector<std::string> Schema::children(std::string_view path) const {
  std::vector<std::string> found;
  for (const Key& key : keys()) {
    if (key.path.find('*') == key.path.npos && parent(key.path) == path) found.push_back(key.path);
  }
  return found;
}

const Schema& core_schema() {
  static const Schema instance = [] {
    Schema made;
    made.reserve(512);
    add_grpo(made);
    add_supervised(made);
    add_loss_fn(made);
    add_checkpointing(made);
    add_policy(made);
    add_batching(made);
    add_optimizer(made);
    add_generation(made);
    add_data(made);
    add_env(made);
    add_logger(made);
    add_cluster(made);
    add_plugins(made);
    add_eval(made);
    add_compat(made);
    add_other_algorithms(made);
    return made;
  }();
  return instance;
}

std::string schema_path(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::string_view part = take_name(path);
    if (is_index(part)) continue;
    if (!result.empty()) result += '.';
    result += part;
  }
  return result;
}

}  // namespace hexad::config
