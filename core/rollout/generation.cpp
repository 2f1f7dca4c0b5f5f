#include "core/rollout/generation.hpp"

#include "lib/base/error.hpp"

namespace hexad::rollout {
namespace {

// Which replica runs which requests: whole groups, the next one to that with the fewest prompt and possible tokens.
// Imposed lengths are not looked at, as nobody knows those of real responses.
std::vector<std::vector<int64_t>> deal(std::span<const Request> requests, int replicas, const Sampling& sampling) {
  std::vector<std::vector<int64_t>> shares(replicas);
  std::vector<int64_t> load(replicas, 0);
  for (size_t begin = 0; begin < requests.size();) {
    size_t end = begin;
    int64_t tokens = static_cast<int64_t>(requests[begin].prompt.size());
    while (end < requests.size() && requests[end].group == requests[begin].group)
      ++end, tokens += sampling.max_new_tokens;
    const size_t target = std::min_element(load.begin(), load.end()) - load.begin();
    for (; begin < end; ++begin) shares[target].push_back(static_cast<int64_t>(begin));
    load[target] += tokens;
  }
  return shares;
}

// Both limits, and the room that the prompt leaves.
int64_t budget(const Request& request, const Sampling& sampling) {
  const int64_t room = sampling.max_total_tokens - static_cast<int64_t>(request.prompt.size());
  return std::min({request.max_new_tokens, sampling.max_new_tokens, room});
}

}  // namespace

Sampling sampling_from(const config::PolicyConfig& policy, const std::vector<int64_t>& eos) {
  const config::GenerationConfig& generation = policy.generation;
  Sampling sampling;
  sampling.temperature = generation.temperature;
  sampling.top_p = generation.top_p;
  sampling.min_p = generation.min_p.value_or(0);
  sampling.top_k = generation.top_k.value_or(0);
  sampling.ignore_eos = generation.ignore_eos;
  sampling.max_new_tokens = generation.max_new_tokens;
  sampling.max_total_tokens = policy.max_total_sequence_length;
  sampling.stop_token_ids = generation.stop_token_ids.value_or(eos);
  sampling.stop_strings = generation.stop_strings;
  return sampling;
}

Sampling with_imposed_lengths(Sampling sampling, const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return sampling;
  sampling.imposed_lengths = lengths;
  sampling.ignore_eos = true;
  sampling.stop_token_ids.clear();
  sampling.stop_strings.clear();
  return sampling;
}

data::Batch Generation::generate(std::span<const Request> requests, const Sampling& sampling) {
  check_prompts(requests, sampling);
  if (without_weights_)
    fail(ErrorKind::worker, "generate: the generators gave their weights back (sleep level 2); refit them first");
  wake();
  const cluster::RankRange ranks = placement_.generators;
  const int replica_size = placement_.replica_size;
  const auto shares = deal(requests, placement_.replicas(), sampling);
  const auto replies = workers_.call<cluster::protocol::Generate>(ranks, [&](int rank) {
    const int place = rank - ranks.first;
    return cluster::protocol::Generate{{.prompts = prompts_of(requests, shares[place / replica_size], sampling),
                                        .sampling = sampling,
                                        .reports = place % replica_size == 0}};
  });
  metrics_ = {};
  std::vector<data::Batch> parts, columns;
  std::vector<int64_t> order;
  for (int place = 0; place < ranks.count; place += replica_size) {
    const std::vector<int64_t>& share = shares[place / replica_size];
    if (share.empty()) continue;
    metrics_.add(replies[place].metrics);
    parts.push_back(replies[place].completions.value());
    columns.push_back(replies[place].columns.value());
    order.insert(order.end(), share.begin(), share.end());
  }
  const std::vector<int64_t> places = data::inverse_permutation(order);
  columns_ = data::Batch::concat(columns).reorder(places);
  return data::Batch::concat(parts).reorder(places);
}

void Generation::sleep(int64_t level) {
  if (level == 0) return;
  workers_.call(placement_.generators, cluster::protocol::Sleep{.level = static_cast<int32_t>(level)});
  asleep_ = true;
  stale_ |= level == 2;
  without_weights_ |= level == 2;
}

void Generation::wake() {
  if (!asleep_) return;
  workers_.call(placement_.generators, cluster::protocol::Wake{});
  asleep_ = false;
}

void Generation::refit(bool recompute_kv_cache) {
  wake();
  refit_.run(++version_, recompute_kv_cache);
  stale_ = without_weights_ = false;
}

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
