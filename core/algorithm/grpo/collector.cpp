#include "core/algorithm/grpo/collector.hpp"

#include <set>

#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

constexpr double kLookEvery = 1;      // seconds between looks at the clock
constexpr int64_t kMostAttempts = 4;  // to draw one group
constexpr const char* kRunEnded = "the run ended";

}  // namespace

int64_t GroupCounts::all_dropped() const {
  int64_t sum = 0;
  for (const auto& [reason, count] : dropped) sum += count;
  return sum;
}

Collector::Collector(Grpo& run, cluster::WorkerGroup& workers)
    : run_(run),
      workers_(workers),
      stream_(workers, run.placement),
      scorer_(run.environments),
      config_(run.config.grpo.async_grpo),
      sampling_(with_imposed_lengths(run.sampling, run.config.policy.generation.imposed_lengths)),
      buffer_(run.config.grpo.num_prompts_per_step, config_.max_trajectory_age_steps),
      next_target_(run.progress.total_steps + 1) {
  workers_.meanwhile([this] { return go_on(); });
}

Collector::~Collector() { workers_.meanwhile(nullptr); }

bool Collector::draw_prompts(int64_t target) {
  const std::vector<const data::Datum*> prompts = run_.prompts.next();
  positions_[target] = run_.prompts.state();
  for (size_t place = 0; place < prompts.size(); ++place)
    waiting_.push_back({.target = target, .place = static_cast<int64_t>(place), .prompt = prompts[place]});
  return !prompts.empty();
}

void Collector::start_groups(int64_t last_step) {
  const int64_t version = run_.progress.total_steps;
  steps_of_version_[run_.generation.weight_version()] = version;
  const int64_t newest = std::min(version + 1 + config_.max_trajectory_age_steps, last_step);
  const auto under_way = [&] { return buffer_.size() + static_cast<int64_t>(running_.size() + waiting_.size()); };
  for (; next_target_ <= newest && !data_ended_; ++next_target_) {
    if (under_way() + run_.config.grpo.num_prompts_per_step > buffer_.capacity()) break;
    data_ended_ = !draw_prompts(next_target_);
  }
  submit();
}

rollout::Plan Collector::plan_of(const Group& group) const {
  const config::GrpoConfig& grpo = run_.config.grpo;
  return {sampling_,
          grpo.num_prompts_per_step,
          grpo.num_generations_per_prompt,
          static_cast<uint64_t>(grpo.seed),
          group.target,
          /*round=*/group.attempt,
          grpo.max_rollout_turns};
}

// Everything that waits, drawn from the current weights.
void Collector::submit() {
  std::vector<int64_t> keys;
  for (; !waiting_.empty(); waiting_.pop_front()) {
    const int64_t key = next_key_++;
    Group& group = running_[key] = std::move(waiting_.front());
    group.version = version_steps(run_.generation.weight_version());
    group.turns = std::make_shared<rollout::Turns>(std::vector{group.prompt}, plan_of(group), group.place);
    ++counts_.started;
    keys.push_back(key);
  }
  go_on(keys);
}

bool Collector::go_on() {
  for (rollout::FinishedGroup& finished : stream_.take_finished()) {
    if (!finished.error.empty()) {
      failed_.emplace_back(finished.key, finished.error);
      continue;
    }
    failures_ = 0;
    Group& group = running_.at(finished.key);
    group.turns->add_responses(finished.completions, std::move(finished.columns), run_.text);
    group.is_drawn = false;
    scorer_.push({finished.key, group.target, group.turns});
  }
  if (error_) return false;
  std::vector<int64_t> keys;
  try {
    for (const rollout::Scorer::Scored& scored : scorer_.take()) {
      reported_[scored.jobs.front().step].add(scored.reported);
      for (const rollout::Scorer::Job& job : scored.jobs) {
        job.turns->add_replies(plan_of(running_.at(job.key)), run_.text);
        keys.push_back(job.key);
      }
    }
  } catch (...) {
    error_ = std::current_exception();
    return false;
  }
  go_on(keys);
  return scorer_.busy();
}

void Collector::go_on(const std::vector<int64_t>& keys) {
  std::vector<rollout::GroupStream::Group> groups;
  for (const int64_t key : keys) {
    Group& group = running_.at(key);
    const std::vector<rollout::Request> requests = group.turns->requests(plan_of(group));
    if (requests.empty()) {
      const Group ended = end(key);
      buffer_.add({ended.target, ended.place, ended.version, ended.turns});
      continue;
    }
    group.is_drawn = true;
    group.began = Clock::now();
    groups.push_back({key, requests});
  }
  stream_.submit(groups, sampling_);
}

void Collector::settle() {
  go_on();
  if (error_) std::rethrow_exception(error_);
  for (const auto& [key, error] : std::exchange(failed_, {})) {
    if (++failures_ > config_.max_generation_failures)
      fail(ErrorKind::worker,
           "generation failed {} time{} in a row, and "
           "grpo.async_grpo.max_generation_failures is {}: {}",
           failures_, failures_ == 1 ? "" : "s", config_.max_generation_failures, error);
    run_.console.line(fmt::format("generation failed, the group is drawn again: {}", error));
    drop(key, "failed", /*again=*/true);
  }
}

Collector::Group Collector::end(int64_t key) {
  auto group = running_.extract(key);
  if (group.empty()) fail(ErrorKind::internal, "asynchronous GRPO: group {} has ended, and it does not run", key);
  return std::move(group.mapped());
}

void Collector::drop(int64_t key, const std::string& reason, bool again) {
  Group group = end(key);
  ++counts_.dropped[reason];
  if (!again) return;
  if (++group.attempt == kMostAttempts)
    fail(ErrorKind::worker,
         "group {} of step {} was given up {} times ({}): its prompt has {} tokens. Raise "
         "grpo.async_grpo.group_timeout_s, or lower policy.generation.max_new_tokens",
         group.place, group.target, kMostAttempts, reason, group.prompt->token_ids.size());
  waiting_.push_back(std::move(group));
}

void Collector::give_up_overdue(const std::function<bool(const Group&)>& wanted) {
  std::vector<int64_t> overdue;
  for (const auto& [key, group] : running_) {
    const double seconds = std::chrono::duration<double>(Clock::now() - group.began).count();
    if (!group.is_drawn || !wanted(group) || seconds <= config_.group_timeout_s) continue;  // rewards have their own
    overdue.push_back(key);
    run_.console.line(fmt::format(
        "group {} of step {} has run for {:.0f} s (grpo.async_grpo.group_timeout_s {}): given up, and drawn again",
        group.place, group.target, seconds, config_.group_timeout_s));
  }
  stream_.cancel(overdue);
  for (const int64_t key : overdue) {
    if (running_.contains(key)) drop(key, "overdue", /*again=*/true);
  }
}

bool Collector::wait_for(int64_t step) {
  const auto wanted = [&](const Group& group) { return group.target == step; };
  while (true) {
    settle();
    if (buffer_.ready(step)) return true;
    if (data_ended_ && step >= next_target_ - 1) return false;
    give_up_overdue(wanted);
    submit();  // what was given up
    workers_.wait_until([&] { return buffer_.ready(step) || has_trouble(); },
                        std::min(kLookEvery, config_.group_timeout_s));
  }
}

void Collector::drain() {
  while (!running_.empty()) {
    workers_.wait_until([&] { return running_.empty() || has_trouble(); },
                        std::min(kLookEvery, config_.group_timeout_s));
    settle();  // however long it took, what has ended is not given up
    give_up_overdue([](const Group&) { return true; });
  }
}

int64_t Collector::version_steps(int64_t version) const {
  const auto found = steps_of_version_.upper_bound(version);
  return found == steps_of_version_.begin() ? run_.progress.total_steps : std::prev(found)->second;
}

rollout::Rollout Collector::take(int64_t step, telemetry::Metrics& metrics) {
  std::vector<rollout::Conversation> conversations;
  std::vector<data::Batch> columns;
  double age = 0;
  const std::vector<Trajectories> groups = buffer_.take(step);
  for (const Trajectories& group : groups) {
    std::ranges::move(group.turns->conversations(), std::back_inserter(conversations));
    columns.push_back(group.turns->columns());
    age += static_cast<double>(age_of(group));
  }
  settle();
  counts_.trained += static_cast<int64_t>(groups.size());
  rollout::Rollout rollout = rollout::rollout_of(conversations, data::Batch::concat(columns),
                                                 run_.config.grpo.num_generations_per_prompt, step, reported_[step]);
  for (const auto& [name, value] : stream_.take_metrics()) rollout.metrics[name] = value;
  add_ages(conversations, step, metrics);
  metrics["avg_trajectory_age"] = age / static_cast<double>(groups.size());
  metrics["buffer_size"] = static_cast<double>(buffer_.size());
  metrics["groups_running"] = static_cast<double>(running_.size());
  metrics["groups_dropped"] = static_cast<double>(counts_.all_dropped());
  positions_.erase(positions_.begin(), positions_.lower_bound(step));
  reported_.erase(reported_.begin(), reported_.upper_bound(step));
  return rollout;
}

void Collector::add_ages(std::span<const rollout::Conversation> conversations, int64_t step,
                         telemetry::Metrics& metrics) const {
  double age = 0, tokens = 0, crossing = 0;
  for (const rollout::Conversation& one : conversations) {
    std::set<int32_t> versions;
    for (const int32_t version : one.versions) {
      if (version < 0) continue;  // not the model's
      versions.insert(version);
      age += static_cast<double>(step - 1 - version_steps(version));
      tokens += 1;
    }
    crossing += versions.size() > 1;
  }
  metrics["avg_token_age"] = tokens > 0 ? age / tokens : 0;
  metrics["updated_in_flight_rate"] = crossing / static_cast<double>(conversations.size());
}

void Collector::stop() {
  std::vector<int64_t> keys;
  for (const auto& [key, group] : running_) keys.push_back(key);
  workers_.meanwhile(nullptr);
  stream_.cancel(keys);
  for (const int64_t key : keys) drop(key, kRunEnded, /*again=*/false);
  if (const int64_t buffered = buffer_.clear()) counts_.dropped[kRunEnded] += buffered;
}

data::LoaderState Collector::position_after(int64_t step) const { return positions_.at(step); }

void Collector::check_balance() const {
  const int64_t known =
      counts_.trained + buffer_.size() + static_cast<int64_t>(running_.size()) + counts_.all_dropped();
  if (known == counts_.started && static_cast<int64_t>(running_.size()) >= stream_.running()) return;
  fail(ErrorKind::internal,
       "asynchronous GRPO: {} groups were started, and {} are known: {} trained, {} buffered, {} running, {} dropped",
       counts_.started, known, counts_.trained, buffer_.size(), running_.size(), counts_.all_dropped());
}

}  // namespace hexad::algorithm
