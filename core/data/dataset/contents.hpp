// What a data set comes to as a whole.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset/processor.hpp"

namespace hexad::data {

struct Contents {
  int64_t size = 0;         // samples: prompts, conversations or pairs
  int64_t too_long = 0;     // of them cut short, which train nothing
  std::string fingerprint;  // of tokens, masks, answers, environments and metadata, in their order
};

Contents contents_of(std::span<const Datum> samples);
// Each sample with several rows (a pair).
Contents contents_of(std::span<const std::vector<Datum>> samples);

// A line about those that are too long, or "" if none is. `what`: their name in the plural; `limit`: tokens. Throws
// Error(data) if all of them are: nothing could be learnt.
std::string too_long_notice(const Contents& contents, const std::string& what, int64_t limit);

}  // namespace hexad::data
