// Level 5 of an environment: scores are finite, repeatable, and of each group alone, whatever the responses say.
#include <algorithm>
#include <cmath>

#include "sdk/verify/case/environment_case.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"

namespace hexad::verify {
namespace {

constexpr int64_t kTurns = 4;

struct Scorer {
  const Subject& subject;
  void* self;
  Findings& findings;

  // Scores that must be fine in themselves; `what` names the samples in findings.
  ScoreResult operator()(const std::vector<SampleText>& samples, const std::string& what) const {
    ScoreResult result = score(subject, self, samples);
    findings.expect(
        result.code == HEXAD_OK, "score",
        what + " made the whole call fail: " + result.text + ". What one sample is to blame for is marked invalid");
    findings.expect(result.damage.empty(), "canary", "with " + what + " it wrote " + result.damage);
    for (size_t i = 0; result.code == HEXAD_OK && i < result.rewards.size(); ++i) {
      const std::string where = "sample " + std::to_string(i) + " of " + what;
      findings.expect(result.invalid[i] <= 1, "invalid", where + " has the flag " + std::to_string(result.invalid[i]));
      findings.expect(result.invalid[i] || std::isfinite(result.rewards[i]), "reward",
                      where + " has the reward " + std::to_string(result.rewards[i]) + "; mark it invalid");
    }
    for (const float part : result.components)
      findings.expect(std::isfinite(part), "components", "with " + what + " one is " + std::to_string(part));
    return result;
  }
};

std::vector<SampleText> group_of(const std::vector<SampleText>& samples, uint64_t group) {
  std::vector<SampleText> part;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(part),
               [&](const SampleText& sample) { return sample.group == group; });
  return part;
}

void check_repeatable(const Scorer& scorer, const std::vector<SampleText>& samples, const ScoreResult& whole) {
  if (!repeatable(scorer.subject)) return;
  scorer.findings.expect(scorer(samples, "ordinary responses").bits() == whole.bits(), "repeatable",
                         "the same samples get other scores the second time; if a judge samples, say "
                         "HEXAD_CAP_NONDETERMINISTIC");
}

// Group by group, from the last to the first.
void check_cut(const Scorer& scorer, const std::vector<SampleText>& samples, const ScoreResult& whole) {
  if (!repeatable(scorer.subject)) return;
  for (uint64_t group = samples.back().group + 1; group-- > 0;) {
    const std::vector<SampleText> part = group_of(samples, group);
    const ScoreResult alone = scorer(part, "group " + std::to_string(group));
    const auto begin = std::find_if(samples.begin(), samples.end(), [&](const auto& s) { return s.group == group; });
    for (size_t i = 0; alone.code == HEXAD_OK && i < part.size(); ++i) {
      scorer.findings.expect(alone.bits_of(i) == whole.bits_of(static_cast<size_t>(begin - samples.begin()) + i), "cut",
                             "group " + std::to_string(group) +
                                 " alone gets other scores than among others: batches may be cut between groups");
    }
  }
}

// Samples that got a reply go on, from the last to the first: the environment keeps nothing of them itself.
void check_turns(const Scorer& scorer, std::vector<SampleText> samples, const ScoreResult& first) {
  ScoreResult said = first;
  for (int64_t turn = 1; turn < kTurns; ++turn) {
    std::vector<SampleText> next;
    for (size_t i = samples.size(); i-- > 0;) {
      if (!said.replies[i] || said.invalid[i]) continue;
      next.push_back(samples[i]);
      next.back().turn = turn;
      next.back().state = said.states[i].value_or("");
    }
    if (next.empty()) return;
    const std::string what = "turn " + std::to_string(turn);
    said = scorer(next, what);
    if (said.code != HEXAD_OK) return;
    if (repeatable(scorer.subject))
      scorer.findings.expect(scorer(next, what).bits() == said.bits(), "turns",
                             what +
                                 " gets other scores the second time: what an environment wants to know of a sample "
                                 "it keeps in the sample's state");
    samples = std::move(next);
  }
}

void check_odd(const Scorer& scorer) {
  const std::vector<SampleText> odd = make_odd_samples();
  for (size_t i = 0; i < odd.size(); ++i) scorer({odd[i]}, "odd response " + std::to_string(i));
  scorer(odd, "all odd responses");
}

}  // namespace

void check_environment(const Subject& subject, Findings& findings) {
  const Instance instance(subject, subject.engine->host());
  if (!findings.expect(static_cast<bool>(instance), "create", instance.error())) return;
  const Scorer scorer{subject, instance.self(), findings};
  const std::vector<SampleText> samples = make_samples();
  const ScoreResult whole = scorer(samples, "ordinary responses");
  if (whole.code != HEXAD_OK) return;
  check_repeatable(scorer, samples, whole);
  check_cut(scorer, samples, whole);
  check_turns(scorer, samples, whole);
  check_odd(scorer);
  findings.expect(score(subject, instance.self(), {}).code == HEXAD_OK, "empty", "no samples at all are an error");
  std::vector<SampleText> many;
  for (uint64_t group = 0; group < 512; ++group) {
    for (SampleText sample : samples) {
      sample.group = group * 4 + sample.group;
      many.push_back(sample);
    }
  }
  scorer(many, "4,096 responses");
}

}  // namespace hexad::verify
