#include "core/environment/program/scoring.hpp"

#include <spdlog/spdlog.h>

#include <thread>

#include "core/environment/patience.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/program/sigpipe.hpp"

namespace hexad::environment {
namespace {

constexpr size_t kLoggedFailures = 5;  // of a call
constexpr auto kLookEvery = std::chrono::milliseconds(50);

process::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<process::Clock::duration>(std::chrono::duration<double>(std::min(count, 1e9)));
}

}  // namespace

ProgramScoring::ProgramScoring(const ProgramSettings& settings, program::ProgramPool& pool,
                               std::span<const Sample> samples, int64_t step)
    : settings_(settings),
      pool_(pool),
      samples_(samples),
      step_(step),
      until_(process::Clock::now() + seconds(settings.deadline_s)) {
  pool.open_log();
  scores_.rewards.resize(samples.size());
  scores_.invalid.resize(samples.size());
  scores_.replies.resize(samples.size());
  scores_.states.resize(samples.size());
  for (const std::string& name : settings.components) scores_.components[name].resize(samples.size());
  const size_t most = settings.batch_size > 0 ? static_cast<size_t>(settings.batch_size)
                                              : (samples.size() + pool.size() - 1) / pool.size();
  for (size_t at = 0; at < samples.size(); ++at) {
    const bool may_end = settings.batch_size > 0 || at == 0 || samples[at].group != samples[at - 1].group;
    if (jobs_.empty() || (may_end && jobs_.back().ids.size() >= most)) jobs_.emplace_back();
    jobs_.back().ids.push_back(static_cast<int64_t>(at));
  }
}

Scores ProgramScoring::run(const std::atomic<int>* interrupted) {
  std::vector<std::jthread> threads;
  threads_ = std::min(pool_.size(), jobs_.size());
  for (size_t i = threads_; i > 0; --i) threads.emplace_back([this] { work(); });
  wait_for_all(interrupted);
  threads.clear();
  if (error_) std::rethrow_exception(error_);
  if (failures_ > kLoggedFailures)
    spdlog::warn("{}: {} more failures in step {}", settings_.path, failures_ - kLoggedFailures, step_);
  if (late_ > 0)
    spdlog::warn(
        "{0}: {1} of {2} rewards of step {3} had not come after {4:g} s, and these samples are invalid. Where "
        "they only take long, raise {0}.deadline_s, or num_workers",
        settings_.path, late_, samples_.size(), step_, settings_.deadline_s);
  if (failures_ > 0) scores_.metrics["num_reward_failures"] = static_cast<double>(failures_);
  return std::move(scores_);
}

void ProgramScoring::wait_for_all(const std::atomic<int>* interrupted) {
  const Patience patience(interrupted);
  std::unique_lock lock(mutex_);
  while (threads_ > 0) {
    changed_.wait_for(lock, kLookEvery);
    if (!patience.over() || stop_) continue;
    stop_ = true;
    error_ = std::make_exception_ptr(
        Interrupted(fmt::format("{}: interrupted, and {} of {} rewards of step {} have not come", settings_.path,
                                samples_.size() - answered_ - failed_, samples_.size(), step_)));
  }
}

void ProgramScoring::work() {
  program::block_sigpipe();
  try {
    while (const std::optional<Job> job = next_job()) {
      std::optional<program::ProgramPool::Lease> lease = pool_.lease(stop_, until_);
      if (stop_) break;
      if (!lease || is_late()) {  // next_job() gives it up with the others
        const std::scoped_lock lock(mutex_);
        jobs_.push_front(*job), --running_jobs_;
        continue;
      }
      try {
        keep(*job, ask(*lease, *job));
      } catch (const program::ProgramStopped&) {
        lease->drop();
      } catch (const BadAnswer& error) {
        lease->drop();  // what it would write next may belong to another request
        fail_once(*job, std::string("gave no answer: ") + error.what());
      } catch (const program::ProgramFailed& error) {
        lease->drop();
        fail_once(*job, error.what());
      }
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::current_exception();
    stop_ = true;
  }
  const std::scoped_lock lock(mutex_);
  --threads_;
  changed_.notify_all();
}

// Waits while others may still give one back; nothing when all is done.
std::optional<ProgramScoring::Job> ProgramScoring::next_job() {
  std::unique_lock lock(mutex_);
  while (jobs_.empty() && running_jobs_ > 0 && !stop_) changed_.wait_for(lock, kLookEvery);
  if (is_late()) give_up_waiting("no copy of the program was free before deadline_s had passed");
  if (jobs_.empty() || stop_) return std::nullopt;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  ++running_jobs_;
  return job;
}

// One that ended while nobody asked it, which is no sample's fault and costs none an attempt.
void ProgramScoring::replace_if_gone(program::ProgramPool::Lease& lease) {
  const std::string why = lease.program().why_gone();
  if (why.empty()) return;
  lease.drop();
  const std::scoped_lock lock(mutex_);
  note_failure(why, "before it was asked, and is started again");
}

std::vector<Answer> ProgramScoring::ask(program::ProgramPool::Lease& lease, const Job& job) {
  using Json = nlohmann::ordered_json;
  const bool batched = settings_.batch_size != 1;
  Json request = Json::array();
  for (const int64_t id : job.ids)
    request.push_back(request_of(samples_[static_cast<size_t>(id)], id, step_, settings_.num_steps));
  replace_if_gone(lease);
  program::Program& program = lease.program();
  const double more = program.fresh() ? settings_.startup_timeout_s : 0;
  // Half of all time is left to the samples of a list that hangs, one by one.
  const double one = settings_.timeout_s, list = std::max(one, settings_.deadline_s / 2);
  const auto deadline = std::min(
      process::Clock::now() + seconds(std::min(one * static_cast<double>(job.ids.size()), list) + more), until_);
  const std::string line = program.ask(data_text(batched ? request : request[0]), deadline, stop_);
  return answers_of(line, job.ids, batched, settings_.components);
}

void ProgramScoring::keep(const Job& job, const std::vector<Answer>& answers) {
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < job.ids.size(); ++i) {
    const auto at = static_cast<size_t>(job.ids[i]);
    scores_.rewards[at] = answers[i].reward;
    scores_.replies[at] = answers[i].reply;
    scores_.states[at] = answers[i].state;
    if (answers[i].answer) {
      scores_.answers.resize(samples_.size());
      scores_.answers[at] = *answers[i].answer;
    }
    for (size_t c = 0; c < settings_.components.size(); ++c)
      scores_.components[settings_.components[c]][at] = answers[i].components[c];
    if (answers[i].invalid) set_invalid(job.ids[i], "the program says that it cannot score it: " + answers[i].reason);
    if (!answers[i].applies) scores_.invalid[at] = kNotApplicable;
  }
  answered_ += job.ids.size();
  --running_jobs_;
  changed_.notify_all();
}

// Under mutex_.
void ProgramScoring::set_invalid(int64_t id, const std::string& why) {
  scores_.invalid[static_cast<size_t>(id)] = 1;
  if (scores_.why_invalid.empty()) scores_.why_invalid = one_line(why);
}

// Under mutex_.
void ProgramScoring::note_failure(const std::string& what, const std::string& when) {
  if (++failures_ <= kLoggedFailures)
    spdlog::warn("{}: `{}` {} (step {}, {})", settings_.path, settings_.shown, what, step_, when);
}

// Under mutex_.
void ProgramScoring::give_up(std::span<const int64_t> ids, const std::string& why) {
  for (const int64_t id : ids) set_invalid(id, why);
  failed_ += ids.size();
  if (is_late()) late_ += ids.size();
}

// Under mutex_.
void ProgramScoring::give_up_waiting(const std::string& why) {
  for (const Job& left : std::exchange(jobs_, {})) give_up(left.ids, why);
}

void ProgramScoring::fail_once(const Job& job, const std::string& what) {
  const std::scoped_lock lock(mutex_);
  note_failure(what, fmt::format("attempt {} of {}", job.attempt + 1, settings_.retries + 1));
  // One by one: a bad one of a batch is not the others' fault. A reward that never works is soon known if they are
  // first; where others have worked they are last, for bad ones may take all the time that is left.
  if (job.attempt >= settings_.retries || is_late())
    give_up(job.ids, what);
  else
    for (const int64_t id : job.ids)
      jobs_.insert(answered_ == 0 ? jobs_.begin() : jobs_.end(), {{id}, job.attempt + 1});
  --running_jobs_;
  if (answered_ == 0 && failed_ >= std::max<size_t>(8, 2 * pool_.size())) give_up_waiting(what);
  changed_.notify_all();
}

}  // namespace hexad::environment
