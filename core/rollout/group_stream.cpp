#include "core/rollout/group_stream.hpp"

#include <algorithm>

namespace hexad::rollout {

using cluster::protocol::Completions;

GroupStream::GroupStream(cluster::WorkerGroup& workers, const cluster::Placement& placement)
    : workers_(workers), placement_(placement), load_(static_cast<size_t>(placement.replicas()), 0) {
  workers_.on_completions([this](int, const Completions& event) { receive(event); });
}

GroupStream::~GroupStream() { workers_.on_completions(nullptr); }

void GroupStream::submit(const std::vector<Group>& groups, const Sampling& sampling) {
  if (groups.empty()) return;
  std::vector<Request> requests;
  std::vector<int64_t> ids;
  std::vector<std::vector<int64_t>> shares(load_.size());
  for (const Group& group : groups) {
    check_prompts(group.requests, sampling);
    Running running;
    running.replica = static_cast<int>(std::ranges::min_element(load_) - load_.begin());
    running.first = next_id_;
    running.missing = static_cast<int64_t>(group.requests.size());
    running.completions.resize(group.requests.size());
    running.columns.resize(group.requests.size());
    auto id_of_prompt = static_cast<int64_t>(running.first);  // requests of one prompt have that of their first
    for (size_t i = 0; i < group.requests.size(); ++i) {
      Request request = group.requests[i];
      running.tokens += static_cast<int64_t>(request.prompt.size()) + sampling.max_new_tokens;
      if (i > 0 && request.group != group.requests[i - 1].group) id_of_prompt = static_cast<int64_t>(next_id_);
      request.group = id_of_prompt;
      shares[static_cast<size_t>(running.replica)].push_back(static_cast<int64_t>(requests.size()));
      key_of_[next_id_] = group.key;
      ids.push_back(static_cast<int64_t>(next_id_++));
      requests.push_back(request);
    }
    load_[static_cast<size_t>(running.replica)] += running.tokens;
    groups_[group.key] = std::move(running);
  }
  workers_.post<cluster::protocol::Submit>(placement_.generators, [&](int rank) {
    const int place = rank - placement_.generators.first;
    const std::vector<int64_t>& share = shares[static_cast<size_t>(place / placement_.replica_size)];
    std::vector<int64_t> of_share;
    for (const int64_t index : share) of_share.push_back(ids[static_cast<size_t>(index)]);
    data::Batch prompts = prompts_of(requests, share, sampling);
    prompts.set("id", data::Tensor::of(of_share), data::Axis::sample);
    return cluster::protocol::Submit{
        {.prompts = prompts, .sampling = sampling, .reports = place % placement_.replica_size == 0}};
  });
}

void GroupStream::cancel(const std::vector<int64_t>& keys) {
  std::vector<uint64_t> ids;
  for (const int64_t key : keys) {
    const auto found = groups_.find(key);
    if (found == groups_.end()) continue;
    const Running& group = found->second;
    load_[static_cast<size_t>(group.replica)] -= group.tokens;
    for (size_t i = 0; i < group.completions.size(); ++i)
      if (key_of_.erase(group.first + i) > 0) ids.push_back(group.first + i);
    groups_.erase(found);
  }
  if (!ids.empty()) workers_.call(placement_.generators, cluster::protocol::CancelRequests{.ids = ids});
}

// A cancelled request's last words, and those of requests that ended as they were cancelled, are of nobody's.
void GroupStream::receive(const Completions& event) {
  metrics_.add(event.metrics);
  for (size_t i = 0; i < event.ids.size(); ++i) {
    const auto found = key_of_.find(event.ids[i]);
    if (found == key_of_.end()) continue;
    const int64_t key = found->second;
    key_of_.erase(found);
    Running& group = groups_.at(key);
    const size_t place = event.ids[i] - group.first;
    group.completions[place] = event.completions.slice(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
    group.columns[place] = event.columns.at(i);
    if (group.error.empty()) group.error = event.errors.at(i);
    if (--group.missing == 0) finish(key);
  }
}

void GroupStream::finish(int64_t key) {
  Running group = std::move(groups_.extract(key).mapped());
  load_[static_cast<size_t>(group.replica)] -= group.tokens;
  FinishedGroup finished{key, {}, {}, group.error};
  if (group.error.empty()) {
    finished.completions = data::Batch::concat(group.completions);
    finished.columns = data::Batch::concat(group.columns);
  }
  finished_.push_back(std::move(finished));
}

}  // namespace hexad::rollout
