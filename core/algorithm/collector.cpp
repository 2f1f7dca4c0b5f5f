#include "core/algorithm/collector.hpp"

#include "core/base/error.hpp"

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
      config_(run.config.grpo.async_grpo),
      sampling_(with_imposed_lengths(run.sampling, run.config.policy.generation.imposed_lengths)),
      buffer_(run.config.grpo.num_prompts_per_step, config_.max_trajectory_age_steps),
      next_target_(run.progress.total_steps + 1) {}

bool Collector::draw_prompts(int64_t target) {
  const std::vector<const data::Datum*> prompts = run_.prompts.next();
  positions_[target] = run_.prompts.state();
  for (size_t place = 0; place < prompts.size(); ++place)
    waiting_.push_back(
        {target, static_cast<int64_t>(place), 0, 0, prompts[place], rollout::prompt_tokens(*prompts[place]), {}});
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

// Everything that waits, drawn from the current weights.
void Collector::submit() {
  std::vector<rollout::GroupStream::Group> groups;
  const config::GrpoConfig& grpo = run_.config.grpo;
  for (; !waiting_.empty(); waiting_.pop_front()) {
    Group& group = running_[next_key_] = std::move(waiting_.front());
    group.version = version_steps(run_.generation.weight_version());
    group.began = Clock::now();
    const rollout::Plan plan{
        sampling_,    grpo.num_prompts_per_step, grpo.num_generations_per_prompt, static_cast<uint64_t>(grpo.seed),
        group.target, /*round=*/group.attempt};
    groups.push_back({next_key_++, rollout::group_requests(plan, group.place, group.tokens)});
    ++counts_.started;
  }
  stream_.submit(groups, sampling_);
}

void Collector::store_finished() {
  for (rollout::FinishedGroup& finished : stream_.take_finished()) {
    if (!finished.error.empty()) {
      if (++failures_ > config_.max_generation_failures)
        fail(ErrorKind::worker,
             "generation failed {} time{} in a row, and "
             "grpo.async_grpo.max_generation_failures is {}: {}",
             failures_, failures_ == 1 ? "" : "s", config_.max_generation_failures, finished.error);
      run_.console.line(fmt::format("generation failed, the group is drawn again: {}", finished.error));
      drop(finished.key, "failed", /*again=*/true);
      continue;
    }
    failures_ = 0;
    const Group group = end(finished.key);
    buffer_.add({group.target, group.place, group.version, group.prompt, std::move(finished.completions),
                 std::move(finished.columns)});
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
         group.place, group.target, kMostAttempts, reason, group.tokens.size());
  waiting_.push_back(std::move(group));
}

void Collector::give_up_overdue(const std::function<bool(const Group&)>& wanted) {
  std::vector<int64_t> overdue;
  for (const auto& [key, group] : running_) {
    const double seconds = std::chrono::duration<double>(Clock::now() - group.began).count();
    if (!wanted(group) || seconds <= config_.group_timeout_s) continue;
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
    store_finished();
    if (buffer_.ready(step)) return true;
    if (data_ended_ && step >= next_target_ - 1) return false;
    give_up_overdue(wanted);
    submit();  // what was given up
    workers_.wait_until([&] { return stream_.has_finished(); }, kLookEvery);
  }
}

void Collector::drain() {
  while (!workers_.wait_until([&] { return stream_.running() == 0; }, kLookEvery)) {
    store_finished();  // however long it took, what has ended is not given up
    give_up_overdue([](const Group&) { return true; });
  }
  store_finished();
}

int64_t Collector::version_steps(int64_t version) const {
  const auto found = steps_of_version_.upper_bound(version);
  return found == steps_of_version_.begin() ? run_.progress.total_steps : std::prev(found)->second;
}

rollout::Rollout Collector::take(int64_t step, telemetry::Metrics& metrics) {
  const std::vector<Trajectories> groups = buffer_.take(step);
  store_finished();
  const int64_t samples = run_.config.grpo.num_generations_per_prompt;
  std::vector<const data::Datum*> prompts;
  std::vector<data::Batch> completions, columns;
  rollout::Drawn drawn;
  double age = 0, token_age = 0, crossing = 0, tokens = 0;
  for (const Trajectories& group : groups) {
    prompts.push_back(group.prompt);
    completions.push_back(group.completions);
    columns.push_back(group.columns);
    age += static_cast<double>(age_of(group));
    for (int64_t i = 0; i < group.completions.size(); ++i) {
      const auto versions = group.completions.row<int32_t>("weight_versions", i);
      for (const int32_t version : versions) token_age += static_cast<double>(step - 1 - version_steps(version));
      tokens += static_cast<double>(versions.size());
      crossing += !versions.empty() && versions.front() != versions.back();
    }
  }
  drawn.completions = data::Batch::concat(completions);
  drawn.columns = data::Batch::concat(columns);
  rollout::Rollout rollout = rollout::finish_rollout(drawn, run_.environments, run_.text, prompts, samples, step);
  for (const auto& [name, value] : stream_.take_metrics()) rollout.metrics[name] = value;
  counts_.trained += static_cast<int64_t>(groups.size());

  const auto count = static_cast<double>(groups.size());
  metrics["avg_trajectory_age"] = age / count;
  metrics["avg_token_age"] = tokens > 0 ? token_age / tokens : 0;
  metrics["updated_in_flight_rate"] = crossing / static_cast<double>(drawn.completions.size());
  metrics["buffer_size"] = static_cast<double>(buffer_.size());
  metrics["groups_running"] = static_cast<double>(running_.size());
  metrics["groups_dropped"] = static_cast<double>(counts_.all_dropped());
  positions_.erase(positions_.begin(), positions_.lower_bound(step));
  return rollout;
}

void Collector::stop() {
  std::vector<int64_t> keys;
  for (const auto& [key, group] : running_) keys.push_back(key);
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
