#include "core/environment/weighted_sum.hpp"

#include <algorithm>
#include <optional>

#include "core/environment/arguments.hpp"
#include "core/environment/length.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::environment {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  std::string name;
  double weight = 1;
  std::unique_ptr<Environment> environment;  // null: it is the length, scaled
  std::optional<CosineLength> cosine;
  size_t of = 0;  // the place of the part that tells which responses are right
};

class WeightedSum : public Environment {
 public:
  explicit WeightedSum(std::vector<Part> parts) : parts_(std::move(parts)) {}

  Scores score(std::span<const Sample> samples, int64_t step) const override {
    Scores sum;
    sum.rewards.resize(samples.size());
    sum.invalid.resize(samples.size());
    sum.replies.resize(samples.size());
    sum.states.resize(samples.size());
    std::vector<std::string> replied(samples.size());  // by which part
    std::vector<Scores> of_parts;
    for (const Part& part : parts_) {
      of_parts.push_back(part.environment ? part.environment->score(with_own_states(part, samples), step)
                                          : scaled(part, samples, of_parts[part.of]));
      add(part, of_parts.back(), sum);
      add_turns(part, of_parts.back(), sum, replied);
    }
    leave_out(of_parts, sum);
    for (size_t p = 0; p < parts_.size(); ++p) {
      report_components(parts_[p].name, of_parts[p], sum);
      if (!fill_gaps(samples, of_parts[p], sum.invalid)) continue;
      sum.components[parts_[p].name] = std::move(of_parts[p].rewards);
    }
    return sum;
  }
  bool compares_answer() const override {
    return std::ranges::any_of(
        parts_, [](const Part& part) { return part.environment && part.environment->compares_answer(); });
  }

 private:
  static Scores scaled(const Part& part, std::span<const Sample> samples, const Scores& right) {
    Scores scores;
    scores.invalid = right.invalid;
    for (size_t i = 0; i < samples.size(); ++i)
      scores.rewards.push_back(part.cosine->reward(samples[i], right.rewards[i] >= 1));
    return scores;
  }

  // A part of weight 0 does not, unless it holds the conversation, which is cut short where it fails.
  static bool can_make_invalid(const Part& part, const Scores& scores) {
    return part.weight != 0 || std::ranges::any_of(scores.replies, [](const auto& reply) { return reply.has_value(); });
  }

  static void add(const Part& part, const Scores& scores, Scores& sum) {
    const bool makes_invalid = can_make_invalid(part, scores);
    for (size_t i = 0; i < sum.rewards.size(); ++i) {
      if (scores.invalid[i] == kNotApplicable) continue;
      sum.rewards[i] += static_cast<float>(part.weight * scores.rewards[i]);
      if (makes_invalid) sum.invalid[i] |= scores.invalid[i];
    }
    if (makes_invalid && sum.why_invalid.empty() && !scores.why_invalid.empty())
      sum.why_invalid = "part '" + part.name + "': " + scores.why_invalid;
    for (const auto& [name, value] : scores.metrics) {
      sum.metrics[part.name + "/" + name] = value;
      if (name == "num_reward_failures") sum.metrics[name] += value;
    }
    if (sum.answers.empty()) sum.answers = scores.answers;
  }

  // Samples about which no part with a weight says anything.
  void leave_out(const std::vector<Scores>& of_parts, Scores& sum) const {
    for (size_t i = 0; i < sum.invalid.size(); ++i) {
      size_t silent = 0, weighted = 0;
      for (size_t p = 0; p < parts_.size(); ++p)
        if (parts_[p].weight != 0) ++weighted, silent += of_parts[p].invalid[i] == kNotApplicable;
      if (weighted > 0 && silent == weighted) sum.invalid[i] = kNotApplicable;
    }
  }

  // The state of a sample has a member for each part that keeps one.
  static std::vector<Sample> with_own_states(const Part& part, std::span<const Sample> samples) {
    std::vector<Sample> own(samples.begin(), samples.end());
    for (Sample& sample : own) {
      if (!sample.state) continue;
      const auto found = sample.state->find(part.name);
      sample.state = found == sample.state->end() ? nullptr : &*found;
    }
    return own;
  }

  static void add_turns(const Part& part, Scores& scores, Scores& sum, std::vector<std::string>& replied) {
    for (size_t i = 0; i < scores.states.size(); ++i)
      if (!scores.states[i].is_null()) sum.states[i][part.name] = std::move(scores.states[i]);
    for (size_t i = 0; i < scores.replies.size(); ++i) {
      if (!scores.replies[i]) continue;
      if (sum.replies[i])
        fail(ErrorKind::config,
             "rewards: the parts '{}' and '{}' both reply to one response: of a weighted sum one part alone may hold "
             "the conversation",
             replied[i], part.name);
      sum.replies[i] = std::move(scores.replies[i]);
      replied[i] = part.name;
    }
  }

  static void report_components(const std::string& part, const Scores& scores, Scores& sum) {
    for (const auto& [name, values] : scores.components) {
      double total = 0, valid = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        if (sum.invalid[i] || scores.invalid[i]) continue;
        total += values[i];
        valid += 1;
      }
      if (valid > 0) sum.metrics["reward/" + part + "/" + name] = total / valid;
    }
  }

  // A valid sample that this part, of weight 0, could not score, or says nothing about, gets the mean of those of its
  // group that it could, or of all: it moves no mean of its group that is reported, and gdpo sees no advantage in it.
  // False: there are none.
  static bool fill_gaps(std::span<const Sample> samples, Scores& part, const std::vector<uint8_t>& invalid) {
    struct Mean {
      double sum = 0, count = 0;
    };
    Mean all;
    std::map<uint64_t, Mean> groups;
    const auto is_gap = [&](size_t i) { return part.invalid[i] && !invalid[i]; };
    bool gaps = false;
    for (size_t i = 0; i < samples.size(); ++i) {
      gaps |= is_gap(i);
      if (part.invalid[i] || invalid[i]) continue;
      for (Mean* mean : {&all, &groups[samples[i].group]}) mean->sum += part.rewards[i], mean->count += 1;
    }
    if (!gaps) return true;
    if (all.count == 0) return false;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (!is_gap(i)) continue;
      const Mean& group = groups[samples[i].group];
      const Mean& mean = group.count > 0 ? group : all;
      part.rewards[i] = static_cast<float>(mean.sum / mean.count);
    }
    return true;
  }

  std::vector<Part> parts_;
};

std::string key_of(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

// A word that is nearly `weight` is no key of what is weighed.
void check_spelling(const Json& entry, const std::string& at) {
  static const std::vector<std::string> own = {"name", "weight"};
  for (const auto& item : entry.items()) {
    const std::optional<std::string> near = nearest(item.key(), own);
    const bool nameless = near == "name" && !entry.contains("name");
    if (nameless || (near == "weight" && !entry.contains("weight") && !entry.contains("plugin")))
      fail(ErrorKind::config, "{}.{}: unknown key, did you mean '{}'?", at, item.key(), *near);
  }
}

Part part_of(const Json& entry, const std::vector<Part>& earlier, const MakePart& make_part) {
  Part part;
  part.name = entry.at("name").get<std::string>();
  Json section = entry;
  section.erase("name");
  part.weight =
      Arguments(part.name, Json{{"weight", section.value("weight", Json(1))}}, {"weight"}).number("weight", 1);
  section.erase("weight");
  const bool length = part.name == "length" || key_of(section, "type") == "length";
  if (!length || key_of(section, "schedule") != "cosine") {
    part.environment = make_part(part.name, section);
    return part;
  }
  section.erase("type");
  try {
    part.cosine.emplace(section);
  } catch (const Error& error) {
    fail(error.kind(), "{}", said_of("env." + part.name, "type", error.what(), "length"));
  }
  const auto of = std::ranges::find(earlier, part.cosine->of(), &Part::name);
  if (of == earlier.end())
    fail(ErrorKind::config,
         "env.{}.of: want the name of an earlier part, which tells whether a response is right, got '{}'", part.name,
         part.cosine->of());
  part.of = static_cast<size_t>(of - earlier.begin());
  return part;
}

}  // namespace

std::unique_ptr<Environment> make_weighted_sum(const std::string& name, const Json& section,
                                               const MakePart& make_part) {
  const Arguments only_rewards(name, section, {"rewards"});
  const Json& list = section.at("rewards");
  const std::string path = only_rewards.path("rewards");
  if (!list.is_array() || list.empty())
    fail(ErrorKind::config, "{}: want a list of parts, as [{{name: math, weight: 1.0}}], got {}", path,
         json_text(list));
  std::vector<Part> parts;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    if (list[i].is_object()) check_spelling(list[i], at);
    if (!list[i].is_object() || key_of(list[i], "name").empty())
      fail(ErrorKind::config, "{}: want a part with a name, as {{name: math, weight: 1.0}}, got {}", at,
           json_text(list[i]));
    if (std::ranges::find(parts, key_of(list[i], "name"), &Part::name) != parts.end())
      fail(ErrorKind::config, "{}: two parts have the name '{}'. Name the second otherwise, with `type: {}`", at,
           key_of(list[i], "name"), key_of(list[i], "name"));
    try {
      parts.push_back(part_of(list[i], parts, make_part));
    } catch (const Error& error) {
      fail(error.kind(), "{}", said_of(at, "name", error.what(), key_of(list[i], "name")));
    }
  }
  return std::make_unique<WeightedSum>(std::move(parts));
}

}  // namespace hexad::environment
