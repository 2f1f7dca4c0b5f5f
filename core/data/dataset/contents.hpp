// What data sets come to as a whole, as far as they are looked at before a run begins.
#pragma once
#include <string>
#include <vector>

#include "core/data/dataset/processor.hpp"
#include "lib/table/lazy.hpp"

namespace hexad::data {

struct Contents {
  int64_t size = 0;             // samples: prompts, conversations or pairs
  int64_t looked_at = 0;        // of them the first kLookedAt of each set; what follows is of these
  int64_t too_long = 0;         // cut short, which train nothing
  int64_t untrained = 0;        // of the others those without a token that trains: the assistant says nothing in them
  int64_t hides_reasoning = 0;  // of those that fit: the chat template shows nothing of an answer's reasoning
  std::string fingerprint;      // of tokens, masks, answers, environments and metadata, in their order
};

Contents contents_of(const std::vector<table::Lazy<Datum>>& sets);
// Each sample with several rows (a pair).
Contents contents_of(const std::vector<table::Lazy<std::vector<Datum>>>& sets);

// Notices are of what was looked at, and say so where that is not all.

// A line about those that are too long, or "" if none is. `what`: their name in the plural; `limit`: tokens. `scored`:
// they are answered as they were cut, and what the answers get counts. Throws Error(data) if all there are are too
// long: nothing could be learnt.
std::string too_long_notice(const Contents& contents, const std::string& what, int64_t limit, bool scored = false);

// Samples that are drawn and too long.
class DrawnTooLong {
 public:
  DrawnTooLong(const Contents& contents, int64_t limit) : limit_(contents.looked_at < contents.size ? limit : 0) {}
  // A sample's first row.
  void see(const Datum& row);
  // Of them since the last call.
  int64_t take_count() { return std::exchange(count_, 0); }
  // A line about the first of them, where a notice of the start has not spoken of all there are; "" else, or once it
  // was taken.
  std::string take_note() { return std::exchange(note_, {}); }

 private:
  int64_t limit_;  // tokens; 0: nothing is left to tell
  int64_t count_ = 0;
  std::string note_;
};

// A line about those of which no token trains, or "". Throws Error(data) if that is so of all that are not too long.
std::string untrained_notice(const Contents& contents, const std::string& what);

// A line about those of which the chat template leaves out reasoning, or "".
std::string hidden_reasoning_notice(const Contents& contents, const std::string& what);

}  // namespace hexad::data
