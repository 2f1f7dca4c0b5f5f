#include "lib/program/pool.hpp"

#include <fmt/format.h>

namespace hexad::program {

ProgramPool::ProgramPool(Start start, std::string who, size_t size)
    : start_(std::move(start)), who_(std::move(who)), slots_(size) {
  for (size_t i = 0; i < size; ++i) program(i);
}

ProgramPool::~ProgramPool() {
  for (const Slot& slot : slots_) {
    if (slot.program) slot.program->close_input();  // all end at the same time
  }
}

Program& ProgramPool::program(size_t slot) {
  std::unique_ptr<Program>& program = slots_[slot].program;
  if (!program) program = std::make_unique<Program>(start_, fmt::format("{} [{}]", who_, slot), log_lines_);
  return *program;
}

std::optional<ProgramPool::Lease> ProgramPool::lease(const std::atomic<bool>& stop, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  for (;;) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!std::exchange(slots_[i].taken, true)) return Lease(this, i);
    }
    if (stop || Clock::now() >= until) return std::nullopt;
    freed_.wait_for(lock, std::chrono::milliseconds(50));
  }
}

void ProgramPool::give_back(size_t slot) {
  const std::scoped_lock lock(mutex_);
  slots_[slot].taken = false;
  freed_.notify_one();
}

}  // namespace hexad::program
