#include "core/rollout/scorer.hpp"

#include <algorithm>
#include <utility>

#include "core/rollout/scoring.hpp"

namespace hexad::rollout {
namespace {

Scorer::Scored score_jobs(std::vector<Scorer::Job> jobs, const Environments& environments) {
  std::vector<Conversation*> all;
  for (const Scorer::Job& job : jobs)
    for (Conversation* one : job.turns->newest()) all.push_back(one);
  Scorer::Scored scored;
  scored.reported = score(all, environments, jobs.front().step);
  scored.jobs = std::move(jobs);
  return scored;
}

}  // namespace

Scorer::Scorer(const Environments& environments) : environments_(environments), thread_([this] { work(); }) {}

Scorer::~Scorer() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Scorer::push(Job job) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
}

std::vector<Scorer::Scored> Scorer::take() {
  const std::scoped_lock lock(mutex_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return std::exchange(scored_, {});
}

bool Scorer::busy() const {
  const std::scoped_lock lock(mutex_);
  return working_ || !waiting_.empty() || !scored_.empty();
}

void Scorer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || (!waiting_.empty() && !error_); });
    if (over_) return;
    const auto others = std::stable_partition(
        waiting_.begin(), waiting_.end(), [step = waiting_.front().step](const Job& job) { return job.step == step; });
    std::vector<Job> jobs(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(others));
    waiting_.erase(waiting_.begin(), others);
    working_ = true;
    lock.unlock();
    std::optional<Scored> scored;
    std::exception_ptr error;
    try {
      scored = score_jobs(std::move(jobs), environments_);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    working_ = false;
    error_ = error;
    if (scored) scored_.push_back(std::move(*scored));
  }
}

}  // namespace hexad::rollout
