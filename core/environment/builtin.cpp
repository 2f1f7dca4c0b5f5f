// The environments that need nothing but the texts, and their registry.
#include <algorithm>
#include <functional>

#include "core/environment/answer.hpp"
#include "core/environment/arguments.hpp"
#include "core/environment/environment.hpp"
#include "core/environment/length.hpp"
#include "lib/base/error.hpp"
#include "lib/base/pattern.hpp"
#include "lib/base/text.hpp"

namespace hexad::environment {
namespace {

using Json = nlohmann::ordered_json;

// Most environments judge each sample on its own.
// Where a sample has no answer the reward is 0: nothing is right then, an empty response neither.
class PerSample : public Environment {
 public:
  Scores score(std::span<const Sample> samples, int64_t) const override {
    Scores scores;
    scores.invalid.assign(samples.size(), 0);
    scores.answers.resize(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) scores.rewards.push_back(reward(samples[i], scores.answers[i]));
    return scores;
  }

 protected:
  // `answer`: Scores::answers of this sample, "" at the call.
  virtual float reward(const Sample& sample, std::string& answer) const = 0;
};

class ExactAnswer : public PerSample {
 public:
  explicit ExactAnswer(const Json& values) {
    const Arguments arguments("exact_answer", values, {"ignore_case", "require_end"});
    ignore_case_ = arguments.flag("ignore_case", true);
    require_end_ = arguments.flag("require_end", false);
  }
  float reward(const Sample& sample, std::string& answer) const override {
    answer = normalized(sample.response, ignore_case_);
    if (require_end_ && sample.truncated) return 0;
    const std::string want = normalized(sample.ground_truth, ignore_case_);
    return !want.empty() && answer == want ? 1.0f : 0.0f;
  }

 private:
  bool ignore_case_ = true, require_end_ = false;
};

class LastNumber : public PerSample {
 public:
  explicit LastNumber(const Json& values) {
    bare_ = Arguments("last_number", values, {"format"}).choice("format", "any", {"any", "bare"}) == "bare";
  }
  float reward(const Sample& sample, std::string& answer) const override {
    if (sample.truncated) return 0;
    const auto want = canonical_number(sample.ground_truth);
    const auto got = bare_ ? canonical_number(sample.response) : last_number(sample.response);
    answer = got.value_or("");
    return want && got && *want == *got ? 1.0f : 0.0f;
  }

 private:
  bool bare_ = false;
};

// The share of characters in their place: a dense reward for short answers.
class TokenTask : public PerSample {
 public:
  explicit TokenTask(const Json& values) { Arguments("token_task", values, {}); }
  float reward(const Sample& sample, std::string& answer) const override {
    const std::string got = normalized(sample.response, false), want = normalized(sample.ground_truth, false);
    answer = got;
    if (want.empty()) return 0;
    const size_t longest = std::max(got.size(), want.size());
    size_t right = 0;
    for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) right += got[i] == want[i];
    return static_cast<float>(right) / static_cast<float>(longest);
  }
};

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

// `tags` (names: <a>..</a> <b>..</b> in this order, each once, white space alone around them) or `regex` (PCRE2; has to
// match the whole response, `.` stands for line ends too). `prefix`: put before the response, for chat templates that
// open the first tag themselves. A regex that reaches PCRE2's limit of steps makes a sample invalid.
class Format : public Environment {
 public:
  explicit Format(const Json& values) {
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
  bool compares_answer() const override { return false; }

 private:
  std::string prefix_;
  std::vector<std::string> tags_;
  std::optional<Pattern> pattern_;
};

struct Entry {
  std::string describes;
  std::function<std::unique_ptr<Environment>(const Json&)> make;
};

template <typename T>
Entry entry(std::string describes) {
  return {std::move(describes), [](const Json& values) { return std::make_unique<T>(values); }};
}

const std::map<std::string, Entry>& registry() {
  static const std::map<std::string, Entry> all = {
      {"exact_answer",
       entry<ExactAnswer>("1 when the response equals the answer (white space, case and a final full stop aside)")},
      {"format", entry<Format>("1 when the response has the wanted form: tags in order, or a regular expression")},
      {"last_number",
       entry<LastNumber>(
           "1 when the last number of a response that ended is the answer; format: bare wants nothing else")},
      {"length", {"from 1 to 0 between two numbers of tokens", make_length}},
      {"token_task", entry<TokenTask>("share of the answer's characters that stand in their place")},
  };
  return all;
}

}  // namespace

std::unique_ptr<Environment> make_environment(const std::string& name, const Json& arguments,
                                              const std::vector<std::string>& others) {
  const auto found = registry().find(name);
  if (found != registry().end()) return found->second.make(arguments);
  std::vector<std::string> names = others;
  for (const auto& known : registry()) names.push_back(known.first);
  std::ranges::sort(names);
  fail(ErrorKind::config,
       "env_name: unknown environment '{0}'{1}; known: {2}. Your own: give it a program (env.{0}.command), a Python "
       "file (env.{0}.python), a plugin (env.{0}.plugin) or parts (env.{0}.rewards)",
       name, did_you_mean(name, names), joined(names));
}

std::map<std::string, std::string> environment_names() {
  std::map<std::string, std::string> names;
  for (const auto& [name, known] : registry()) names[name] = known.describes;
  return names;
}

}  // namespace hexad::environment
