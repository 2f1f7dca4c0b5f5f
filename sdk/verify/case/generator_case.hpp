// Requests to a generator, run to their end, and the parts of level 5 that run their own.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sdk/verify/engine.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::verify {

struct Answer {
  int32_t finish = HEXAD_FINISH_NONE;
  int finals = 0;  // events that ended the request; exactly one is right
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<hexad_version_span> spans;
  std::string error;
  std::string bad_column;  // what is wrong with its columns; empty if nothing is
};

struct Answers {
  hexad_code code = HEXAD_OK;  // of submit or poll
  std::string text;
  std::map<uint64_t, Answer> by_id;
  std::string stranger;  // an event that no request of these asked for; empty if there was none

  // Tokens and log-probs of all requests: equal bits give equal text.
  std::string bits() const;
};

// A request for `max_new_tokens` after prompt {1, 2, 3}; temperature 0 is greedy.
hexad_request make_request(uint64_t id, double temperature, uint64_t seed, int64_t max_new_tokens);

// Submits all, polls until each has ended or the subject's patience is over, and once more; releases every event.
// `cancel_id`: cancelled twice right after submission; 0: none.
Answers run_requests(const Subject& subject, void* instance, const std::vector<hexad_request>& requests,
                     uint64_t cancel_id = 0, const CallOptions& options = {});

// Level 5 (level/generator.cpp), whose parts in files of their own each run requests of their own on `self`.

constexpr int64_t kNewTokens = 8;

bool ok(const Answers& answers, const std::string& what, Findings& findings);

// Probabilities are those of the distribution that was drawn from; a stop token ends and is kept.
void check_draws(const Subject& subject, void* self, Findings& findings);
// Events stay as they are until they are released, and no more come than there is room for.
void check_events(const Subject& subject, void* self, Findings& findings);
// An update takes effect as a whole when it is committed, and not at all otherwise.
void check_refit(const Subject& subject, void* self, Findings& findings);

}  // namespace hexad::verify
