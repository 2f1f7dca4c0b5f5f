#include "core/manifest/bounded_json.hpp"

#include <algorithm>
#include <unordered_set>

#include "core/base/error.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

// Builds the value from the parser's events. nlohmann's own builder keeps one of two equal keys without a word, and its
// callbacks, which could tell, take twice the time.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(size_t deepest, const std::string& where) : deepest_(deepest), where_(where) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // no part of JSON
  bool start_object(size_t /*size*/) override { return open(true); }
  bool start_array(size_t /*size*/) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/, const nlohmann::detail::exception& error) override {
    fail(ErrorKind::plugin, "{}: not JSON: {}", where_, error.what());
  }

 private:
  // An array or object that is open. Members are kept apart from the object, whose map copies all of them when it
  // grows.
  struct Level {
    bool is_object;
    std::string name;                                   // in the object above
    std::vector<std::pair<std::string, Json>> members;  // of an array: without names
  };

  bool put(Json value) {
    if (levels_.empty())
      root_ = std::move(value);
    else
      levels_.back().members.emplace_back(std::move(name_), std::move(value));
    return true;
  }
  bool open(bool is_object) {
    if (levels_.size() == deepest_) fail(ErrorKind::plugin, "{}: nested deeper than {} levels", where_, deepest_);
    levels_.push_back({is_object, std::move(name_), {}});
    return true;
  }
  bool close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    name_ = std::move(level.name);
    return put(level.is_object ? object_of(level.members) : array_of(level.members));
  }
  void refuse_repeats(const std::vector<std::pair<std::string, Json>>& members) const {
    constexpr size_t kFew = 8;  // of which each is soon compared with all others
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i < members.size(); ++i) {
      const std::string& name = members[i].first;
      const auto end = members.begin() + static_cast<ptrdiff_t>(i);
      const bool repeats = members.size() <= kFew
                               ? std::any_of(members.begin(), end, [&](const auto& each) { return each.first == name; })
                               : !names.insert(name).second;
      if (repeats) fail(ErrorKind::plugin, "{}: key '{}' stands twice in one object", where_, name);
    }
  }
  Json object_of(std::vector<std::pair<std::string, Json>>& members) const {
    refuse_repeats(members);
    Json object = Json::object();
    auto& map = object.get_ref<Json::object_t&>();
    map.reserve(members.size());
    // Not by the map's own emplace, which looks at all names again.
    for (auto& [name, value] : members) map.Container::emplace_back(name, std::move(value));
    return object;
  }
  static Json array_of(std::vector<std::pair<std::string, Json>>& members) {
    Json array = Json::array();
    auto& items = array.get_ref<Json::array_t&>();
    items.reserve(members.size());
    for (auto& [name, value] : members) items.push_back(std::move(value));
    return array;
  }

  size_t deepest_;
  const std::string& where_;
  Json root_;
  std::vector<Level> levels_;  // what is open
  std::string name_;           // of the next value of an object
};

}  // namespace

Json parse_bounded(std::string_view text, size_t deepest, const std::string& where) {
  Builder builder(deepest, where);
  Json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace hexad::plugin
