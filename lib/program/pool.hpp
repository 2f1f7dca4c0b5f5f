// N copies of a program, each used by one thread at a time, made again when it fails.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/program/asked.hpp"

namespace hexad::program {

class ProgramPool {
 public:
  // Starts all of them. `who` begins their lines in the log. Throws ProgramFailed.
  ProgramPool(Start start, std::string who, size_t size);
  ~ProgramPool();
  ProgramPool(const ProgramPool&) = delete;
  ProgramPool& operator=(const ProgramPool&) = delete;

  size_t size() const { return slots_.size(); }
  // What the programs write on standard error goes to the log again, up to a bound.
  void open_log() { log_lines_ = kLogLines; }

  // The right to one of them. Goes back when it is destroyed; nothing if `stop` was set, or `until` had passed, while
  // all were in use.
  class Lease {
   public:
    Lease(Lease&& from) noexcept : pool_(std::exchange(from.pool_, nullptr)), slot_(from.slot_) {}
    ~Lease() {
      if (pool_) pool_->give_back(slot_);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    // Started, if it was dropped. Throws ProgramFailed.
    Program& program() { return pool_->program(slot_); }
    // It failed: it ends now, and the next user starts another.
    void drop() { pool_->slots_[slot_].program.reset(); }

   private:
    friend class ProgramPool;
    Lease(ProgramPool* pool, size_t slot) : pool_(pool), slot_(slot) {}
    ProgramPool* pool_;
    size_t slot_;
  };
  std::optional<Lease> lease(const std::atomic<bool>& stop, Clock::time_point until);

 private:
  static constexpr int64_t kLogLines = 100;
  struct Slot {
    std::unique_ptr<Program> program;
    bool taken = false;  // under mutex_; the program is its taker's
  };
  Program& program(size_t slot);
  void give_back(size_t slot);

  Start start_;
  std::string who_;
  std::atomic<int64_t> log_lines_ = kLogLines;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Slot> slots_;
};

}  // namespace hexad::program
