// Requests as a generator takes them, of a batch of prompts; and its completions, as a batch again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <hexad/abi.h>

#include "core/cluster/protocol/protocol.hpp"
#include "core/data/batch.hpp"

namespace hexad::cluster {

// Requests and what they point to.
struct Requests {
  std::vector<hexad_request> requests;
  std::vector<const hexad_request*> pointers;
  std::vector<int32_t> stop_token_ids;
  std::vector<std::string> stop_strings;
  std::vector<const char*> stop_pointers;
};

// The prompts have the columns tokens i32 (token), group, seed and max_new_tokens i64 (sample), and id i64 (sample),
// without which a request's id is its row. Borrows them.
std::unique_ptr<Requests> make_requests(const protocol::Prompts& of);

struct Completion {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<int32_t> versions;  // of the weights that drew each token
  int32_t finish = HEXAD_FINISH_NONE;
  int64_t version = 0;  // of those that drew the first
};
Completion completion_of(const hexad_completion& event);

// Columns tokens i32, logprobs f32 and weight_versions i32 (token), finish i32 and weight_version i64 (sample).
data::Batch to_batch(const std::vector<Completion>& completions);

// The per-token arrays that a generator gives along with a completion (hexad_completion.columns), copied: a batch of
// one sample of prompt_tokens + completion.count tokens. Empty of columns where there are none. Throws Error(plugin),
// which begins with `label`, for one that is not as the ABI has it.
data::Batch columns_of(const std::string& label, const hexad_completion& completion, int64_t prompt_tokens);

// Those of all completions in this order. Throws Error(plugin) unless they have the same columns.
data::Batch join_columns(const std::string& label, const std::vector<data::Batch>& parts);

}  // namespace hexad::cluster
