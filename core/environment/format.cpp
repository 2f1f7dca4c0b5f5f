#include "core/environment/format.hpp"

#include "lib/base/error.hpp"
#include "lib/base/pattern.hpp"
#include "core/environment/arguments.hpp"

namespace hexad::environment {
namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool once(std::string_view text, const std::string& part) {
  const size_t at = text.find(part);
  return at != text.npos && text.find(part, at + 1) == text.npos;
}

bool tagged(std::string_view text, const std::vector<std::string>& tags) {
  std::string_view rest = text;
  for (const std::string& tag : tags) {
    const std::string open = "<" + tag + ">", close = "</" + tag + ">";
    rest = trimmed(rest);
    if (!once(text, open) || !once(text, close) || !rest.starts_with(open)) return false;
    const size_t end = rest.find(close);
    if (end == rest.npos) return false;
    rest.remove_prefix(end + close.size());
  }
  return trimmed(rest).empty();
}

class Format : public Environment {
 public:
  explicit Format(const nlohmann::ordered_json& values) {
    const Arguments arguments("format", values, {"tags", "regex", "prefix"});
    prefix_ = arguments.text("prefix", "");
    tags_ = arguments.texts("tags");
    const std::string regex = arguments.text("regex", "");
    if (tags_.empty() == regex.empty())
      fail(ErrorKind::config, "env.format: want one of tags (as [think, answer]) and regex, got {}",
           regex.empty() ? "neither" : "both");
    for (const std::string& tag : tags_) {
      if (tag.empty() || tag.find_first_of("<>/ ") != tag.npos)
        fail(ErrorKind::config, "{}: want names as think, without < and >, got '{}'", arguments.path("tags"), tag);
    }
    if (!regex.empty()) pattern_ = Pattern::of_user(arguments.path("regex"), regex);
  }

  Scores score(std::span<const Sample> samples, int64_t) const override {
    Scores scores;
    for (const Sample& sample : samples) {
      const std::string text = prefix_ + std::string(sample.response);
      const std::optional<bool> good = pattern_ ? pattern_->decide(text) : tagged(text, tags_);
      scores.rewards.push_back(good.value_or(false) ? 1.0f : 0.0f);
      scores.invalid.push_back(!good);
      if (!good) scores.why_invalid = "env.format.regex takes too many steps on a response: PCRE2 gave it up";
    }
    return scores;
  }

 private:
  std::string prefix_;
  std::vector<std::string> tags_;
  std::optional<Pattern> pattern_;
};

}  // namespace

std::unique_ptr<Environment> make_format(const nlohmann::ordered_json& arguments) {
  return std::make_unique<Format>(arguments);
}

}  // namespace hexad::environment
