// Samples for an environment, and what score makes of them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sdk/verify/engine.hpp"

namespace hexad::verify {

struct SampleText {
  uint64_t group = 0;
  std::string response;
  std::string ground_truth = "42";
  std::string metadata = "{}";
  bool truncated = false;
  int64_t turn = 0;
  std::string state = {};
};

// Four groups of two: right and wrong answers in several styles.
std::vector<SampleText> make_samples();
// One a group, each odd in its own way: empty, huge, NULs, broken UTF-8, deep nesting, digits without end.
std::vector<SampleText> make_odd_samples();

struct ScoreResult {
  hexad_code code = HEXAD_OK;
  std::string text;  // of the error
  std::vector<float> rewards;
  std::vector<uint8_t> invalid;
  std::vector<float> components;                                            // [num_components][samples]
  std::vector<std::optional<std::string>> replies, roles, states, answers;  // [samples]
  std::string damage;  // what was written that may not be; empty if nothing

  // Of all scores: equal bits give equal text.
  std::string bits() const;
  // The scores of one sample.
  std::string bits_of(size_t sample) const;
};

// `grown`: samples and outputs as a later minor would pass them, with poison behind the fields of today.
ScoreResult score(const Subject& subject, void* instance, const std::vector<SampleText>& samples,
                  const CallOptions& options = {}, bool grown = false);

}  // namespace hexad::verify
