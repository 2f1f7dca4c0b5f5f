// What a data set comes to as a whole.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset/processor.hpp"

namespace hexad::data {

struct Contents {
  int64_t size = 0;             // samples: prompts, conversations or pairs
  int64_t too_long = 0;         // of them cut short, which train nothing
  int64_t untrained = 0;        // of the others those without a token that trains: the assistant says nothing in them
  int64_t hides_reasoning = 0;  // of those that fit: the chat template shows nothing of an answer's reasoning
  std::string fingerprint;      // of tokens, masks, answers, environments and metadata, in their order
};

Contents contents_of(std::span<const Datum> samples);
// Each sample with several rows (a pair).
Contents contents_of(std::span<const std::vector<Datum>> samples);

// A line about those that are too long, or "" if none is. `what`: their name in the plural; `limit`: tokens. `scored`:
// they are answered as they were cut, and what the answers get counts. Throws Error(data) if all of them are too long:
// nothing could be learnt.
std::string too_long_notice(const Contents& contents, const std::string& what, int64_t limit, bool scored = false);

// A line about those of which no token trains, or "". Throws Error(data) if that is so of all that are not too long.
std::string untrained_notice(const Contents& contents, const std::string& what);

// A line about those of which the chat template leaves out reasoning, or "".
std::string hidden_reasoning_notice(const Contents& contents, const std::string& what);

}  // namespace hexad::data
