#include "core/rollout/request_message.hpp"

#include "lib/base/error.hpp"

namespace hexad::rollout {
namespace {

// Both limits, and the room that the prompt leaves.
int64_t budget(const Request& request, const Sampling& sampling) {
  const int64_t room = sampling.max_total_tokens - static_cast<int64_t>(request.prompt.size());
  return std::min({request.max_new_tokens, sampling.max_new_tokens, room});
}

}  // namespace

void check_prompts(std::span<const Request> requests, const Sampling& sampling) {
  for (const Request& request : requests) {
    if (request.prompt.empty() || static_cast<int64_t>(request.prompt.size()) >= sampling.max_total_tokens) {
      fail(ErrorKind::data,
           "generate: a prompt of {} tokens; it needs 1 to {} to leave room within policy.max_total_sequence_length={}",
           request.prompt.size(), sampling.max_total_tokens - 1, sampling.max_total_tokens);
    }
  }
}

data::Batch prompts_of(std::span<const Request> requests, std::span<const int64_t> share, const Sampling& sampling) {
  std::vector<int64_t> lengths, groups, seeds, budgets;
  std::vector<int32_t> tokens;
  for (const int64_t index : share) {
    const Request& request = requests[index];
    lengths.push_back(static_cast<int64_t>(request.prompt.size()));
    groups.push_back(request.group);
    seeds.push_back(static_cast<int64_t>(request.seed));
    budgets.push_back(budget(request, sampling));
    tokens.insert(tokens.end(), request.prompt.begin(), request.prompt.end());
  }
  data::Batch batch = data::Batch::of_lengths(lengths);
  batch.set("tokens", data::Tensor::of(tokens), data::Axis::token);
  batch.set("group", data::Tensor::of(groups), data::Axis::sample);
  batch.set("seed", data::Tensor::of(seeds), data::Axis::sample);
  batch.set("max_new_tokens", data::Tensor::of(budgets), data::Axis::sample);
  return batch;
}

}  // namespace hexad::rollout
