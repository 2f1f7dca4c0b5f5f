#include "lib/base/json.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <unordered_set>
#include <vector>

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <rapidjson/stream.h>

#include "lib/base/error.hpp"
#include "lib/base/utf8.hpp"

namespace hexad {
namespace {

using Json = nlohmann::ordered_json;

// What a parser is asked for.
struct Wanted {
  size_t deepest;
  const std::string& where;  // in front of messages
  ErrorKind kind;            // of errors
};

// A number that json_text would write as `text`; else a binary value of its characters.
Json number_as_written(std::string_view text) {
  const auto reads = [&](auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  Json number;
  if (uint64_t natural = 0; text[0] != '-' && reads(natural)) return natural;
  if (int64_t whole = 0; text != "-0" && reads(whole)) return whole;
  if (double real = 0; text.find_first_of(".eE") != text.npos && reads(real)) number = real;
  return json_text(number) == text ? number : Json::binary(std::vector<uint8_t>(text.begin(), text.end()));
}

// Builds the value from RapidJSON's events, whose names these are. nlohmann's own parser takes three times the
// instructions, and keeps one of two equal keys without a word.
class Builder {
 public:
  // `has_escapes`: whether texts may name characters by \uXXXX, the one way to halves of surrogate pairs in UTF-8.
  Builder(const Wanted& wanted, bool has_escapes) : wanted_(wanted), has_escapes_(has_escapes) {}

  Json take() { return std::move(root_); }

  bool Null() { return put(nullptr); }
  bool Bool(bool value) { return put(value); }
  bool Int(int32_t value) { return put(value); }
  bool Uint(uint32_t value) { return put(value); }
  bool Int64(int64_t value) { return put(value); }
  bool Uint64(uint64_t value) { return put(value); }
  bool Double(double value) { return put(value); }
  // Asked for in the place of the numbers above where they stay as they were written.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return put(number_as_written({text, size}));
  }
  // False ends the parsing. RapidJSON itself refuses the first half of a pair alone, and takes the second alone.
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return is_whole({text, size}) && put(std::string(text, size));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    name_.assign(text, size);
    return is_whole(name_);
  }
  bool StartObject() { return open(true); }
  bool StartArray() { return open(false); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }

 private:
  // The members of all arrays and objects that are open stand in one list, the innermost last. (The map of an object
  // copies all of its members when it grows.)
  struct Member {
    std::string name;  // of an array: empty
    Json value;
  };
  struct Level {
    bool is_object;
    std::string name;  // in the object above
    size_t begin;      // of its members
  };
  using Members = std::span<Member>;

  bool is_whole(std::string_view text) const { return !has_escapes_ || utf8_prefix(text) == text.size(); }
  bool put(Json value) {
    if (levels_.empty())
      root_ = std::move(value);
    else
      members_.push_back({std::move(name_), std::move(value)});
    return true;
  }
  bool open(bool is_object) {
    if (levels_.size() == wanted_.deepest)
      fail(wanted_.kind, "{}: nested deeper than {} levels", wanted_.where, wanted_.deepest);
    levels_.push_back({is_object, std::move(name_), members_.size()});
    return true;
  }
  bool close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    const Members members = Members(members_).subspan(level.begin);
    Json value = level.is_object ? object_of(members) : array_of(members);
    members_.resize(level.begin);
    name_ = std::move(level.name);
    return put(std::move(value));
  }
  void refuse_repeats(Members members) const {
    constexpr size_t kFew = 8;  // of which each is soon compared with all others
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i < members.size(); ++i) {
      const std::string& name = members[i].name;
      const auto is_it = [&](const Member& each) { return each.name == name; };
      const bool repeats =
          members.size() <= kFew ? std::ranges::any_of(members.first(i), is_it) : !names.insert(name).second;
      if (repeats) fail(wanted_.kind, "{}: key '{}' stands twice in one object", wanted_.where, name);
    }
  }
  Json object_of(Members members) const {
    refuse_repeats(members);
    Json object = Json::object();
    auto& map = object.get_ref<Json::object_t&>();
    map.reserve(members.size());
    // Not by the map's own emplace, which looks at all names again.
    for (auto& [name, value] : members) map.Container::emplace_back(std::move(name), std::move(value));
    return object;
  }
  static Json array_of(Members members) {
    Json array = Json::array();
    auto& items = array.get_ref<Json::array_t&>();
    items.reserve(members.size());
    for (auto& [name, value] : members) items.push_back(std::move(value));
    return array;
  }

  const Wanted& wanted_;
  const bool has_escapes_;
  Json root_;
  std::vector<Level> levels_;  // what is open
  std::vector<Member> members_;
  std::string name_;  // of the next value of an object
};

[[noreturn]] void refuse(std::string_view text, size_t at, std::string_view why, const Wanted& wanted) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  if (wanted.kind == ErrorKind::data && text.find('\n') == text.npos)  // a line of a file, which `where` names
    fail(wanted.kind, "{}: malformed JSON: column {}: {}", wanted.where, column, why);
  fail(wanted.kind, "{}: not JSON: line {}, column {}: {}", wanted.where, line, column, why);
}

// `rest`: the text from the error on.
std::string_view reason(rapidjson::ParseErrorCode code, std::string_view rest) {
  if (code == rapidjson::kParseErrorNumberTooBig)
    return "a number beyond 1.8e308: such a one has to be a text, in quotes";
  if (code == rapidjson::kParseErrorStringUnicodeSurrogateInvalid)
    return "half of a surrogate pair (\\ud800 to \\udfff), which is no character: leave it out";
  if (code == rapidjson::kParseErrorTermination)  // Builder's
    return "in the text before this: half of a surrogate pair (\\ud800 to \\udfff), which is no character: leave it "
           "out";
  if (rest.starts_with("NaN") || rest.starts_with("Infinity"))
    return "NaN and Infinity are no JSON: write null, or leave the field out";
  return rapidjson::GetParseError_En(code);
}

template <unsigned kMoreFlags>
Json parse(std::string_view text, const Wanted& wanted) {
  constexpr unsigned kFlags =
      rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag | kMoreFlags;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (const size_t valid = utf8_prefix(text); valid < text.size()) refuse(text, valid, "not UTF-8", wanted);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string unescaped(text);  // in which RapidJSON replaces escapes
  rapidjson::InsituStringStream stream(unescaped.data());
  Builder builder(wanted, text.find("\\u") != text.npos);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (!result)
    refuse(text, result.Offset(), reason(result.Code(), text.substr(std::min(result.Offset(), text.size()))), wanted);
  if (stream.Tell() < text.size()) refuse(text, stream.Tell(), "a NUL character", wanted);  // RapidJSON's end of a text
  return builder.take();
}

}  // namespace

Json parse_bounded(std::string_view text, size_t deepest, const std::string& where) {
  return parse<0>(text, {deepest, where, ErrorKind::plugin});
}

Json parse_data(std::string_view text, const std::string& where) {
  return parse<rapidjson::kParseNumbersAsStringsFlag>(text, {kDeepestJson, where, ErrorKind::data});
}

}  // namespace hexad
