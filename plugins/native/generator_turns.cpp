// How a generator takes its turns: alone as they come, in a replica of several ranks as rank 0 says.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "plugins/native/device_scope.hpp"
#include "plugins/native/generator.hpp"

namespace hexad::native {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(50);

}  // namespace

std::optional<Turn> Generator::next_turn(const sdk::Call& call) {
  if (lockstep_->follows()) {
    if (apart_) return std::nullopt;
    Turn turn;
    on_device(call, settings_.device, [&] {
      turn = lockstep_->receive(engine_->digest());
      if (turn.asks && lockstep_->any(call.cancelled())) called_off_ = true;
    });
    const std::lock_guard lock(state_mutex_);
    dirty_ = false;
    if (!turn.apart) return turn;
    apart_ = true;
    return std::nullopt;
  }
  Turn turn;
  turn.digest = engine_->digest();
  {
    const std::lock_guard lock(state_mutex_);
    for (const auto& sequence : inbox_) turn.arrived.push_back(sequence->request.id);
    turn.cancelled.swap(cancelled_);
    dirty_ = false;
  }
  if (lockstep_->leads()) on_device(call, settings_.device, [&] { lead(call, turn); });
  return turn;
}

void Generator::lead(const sdk::Call& call, Turn& turn) {
  const auto now = std::chrono::steady_clock::now();
  const bool cancelled = call.cancelled();
  turn.asks = cancelled || now >= next_question_;
  lockstep_->send(turn);
  if (!turn.asks) return;
  next_question_ = now + kAskEvery;
  if (lockstep_->any(cancelled)) called_off_ = true;
}

bool Generator::is_called_off(const sdk::Call& call) {
  return lockstep_->replica().alone() ? call.cancelled() : called_off_.exchange(false);
}

std::vector<std::unique_ptr<Sequence>> Generator::take_from_inbox(const std::vector<uint64_t>& ids) {
  std::vector<std::unique_ptr<Sequence>> taken;
  std::unique_lock lock(state_mutex_);
  size_t place = 0;  // they mostly come in the order of the inbox
  for (const uint64_t id : ids) {
    const auto is_it = [&](const auto& sequence) { return sequence && sequence->request.id == id; };
    const auto there = [&] {
      if (place < inbox_.size() && is_it(inbox_[place])) return true;
      place = static_cast<size_t>(std::ranges::find_if(inbox_, is_it) - inbox_.begin());
      return place < inbox_.size();
    };
    if (!there() && !changed_.wait_for(lock, lockstep_->replica().timeout(), there)) {
      const std::string text = fmt::format(
          "{}: rank 0 of it runs request {}, which rank {} was not given: submit the same requests to every rank",
          lockstep_->replica().name(), id, lockstep_->replica().shard().rank);
      throw sdk::Error(HEXAD_FAILED_PRECONDITION, text);
    }
    taken.push_back(std::move(inbox_[place++]));
  }
  std::erase(inbox_, nullptr);
  return taken;
}

void Generator::come_apart(const sdk::Call& call) {
  if (lockstep_->leads()) {
    Turn turn;
    turn.apart = true, turn.digest = engine_->digest();
    on_device(call, settings_.device, [&] { lockstep_->send(turn); });
  }
  if (!lockstep_->follows()) return;
  while (!apart_)
    if (const std::optional<Turn> turn = next_turn(call)) run_turn(call, *turn);
  apart_ = false;
}

}  // namespace hexad::native
