// One call of score(): its samples are asked of the programs of a pool, by a thread for each program that is wanted.
#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>

#include "core/environment/environment.hpp"
#include "core/environment/program/environment.hpp"
#include "core/environment/program/exchange.hpp"
#include "lib/program/pool.hpp"

namespace hexad::environment {

class ProgramScoring {
 public:
  // Borrows everything.
  ProgramScoring(const ProgramSettings& settings, program::ProgramPool& pool, std::span<const Sample> samples,
                 int64_t step);

  // Once. Throws Interrupted.
  Scores run(const std::atomic<int>* interrupted);
  size_t answered() const { return answered_; }  // samples, invalid ones of the program's own among them
  size_t failed() const { return failed_; }      // those that no program answered, or was asked in time

 private:
  struct Job {
    std::vector<int64_t> ids;  // places of samples
    int64_t attempt = 0;
  };
  void wait_for_all(const std::atomic<int>* interrupted);
  void work();
  std::optional<Job> next_job();
  // Throws program::ProgramFailed, BadAnswer or program::ProgramStopped.
  std::vector<Answer> ask(program::ProgramPool::Lease& lease, const Job& job);
  void replace_if_gone(program::ProgramPool::Lease& lease);
  void note_failure(const std::string& what, const std::string& when);
  void keep(const Job& job, const std::vector<Answer>& answers);
  void fail_once(const Job& job, const std::string& what);
  void give_up(std::span<const int64_t> ids, const std::string& why);
  void give_up_waiting(const std::string& why);
  void set_invalid(int64_t id, const std::string& why);
  bool is_late() const { return process::Clock::now() >= until_; }

  const ProgramSettings& settings_;
  program::ProgramPool& pool_;
  std::span<const Sample> samples_;
  const int64_t step_;
  const process::Clock::time_point until_;
  std::atomic<bool> stop_ = false;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  size_t running_jobs_ = 0, threads_ = 0, answered_ = 0, failed_ = 0, failures_ = 0, late_ = 0;
  std::exception_ptr error_;
  Scores scores_;
};

}  // namespace hexad::environment
