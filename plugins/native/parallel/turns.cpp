#include "plugins/native/parallel/turns.hpp"

#include <fmt/format.h>

#include <utility>

#include "plugins/native/device_scope.hpp"

namespace hexad::native {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(50);

}  // namespace

Turns::Turns(const Replica& replica, at::Device device, Mailbox& mailbox)
    : lockstep_(replica), in_turn_(replica, replica.in_order()), device_(device), mailbox_(mailbox) {}

std::optional<Turn> Turns::next(const sdk::Call& call, uint64_t digest) {
  if (lockstep_.follows()) return follow(call, digest);
  Turn turn;
  turn.digest = digest;
  Mailbox::News news = mailbox_.look();
  turn.arrived = std::move(news.arrived), turn.cancelled = std::move(news.cancelled);
  if (lockstep_.leads()) on_device(call, device_, [&] { lead(call, turn); });
  return turn;
}

std::optional<Turn> Turns::follow(const sdk::Call& call, uint64_t digest) {
  if (apart_) {
    require_in_time();
    return std::nullopt;
  }
  Turn turn;
  on_device(call, device_, [&] {
    turn = lockstep_.receive(digest);
    if (turn.asks && lockstep_.any(call.cancelled())) called_off_ = true;
  });
  mailbox_.look_away();
  if (!turn.apart) return turn;
  apart_ = true, apart_until_ = Clock::now() + replica().timeout();
  return std::nullopt;
}

// Of a rank whose host is to act: throws when it has not done so within the group's timeout.
void Turns::require_in_time() const {
  if (Clock::now() < apart_until_) return;
  const std::string text = fmt::format(
      "{}: rank 0 of it has begun what comes between two passes (an update, pause, resume, sleep, wake, flush_cache or "
      "weight_layout), and rank {} was not called so within {} s: make the same calls on every rank",
      replica().name(), replica().shard().rank, 1e-3 * static_cast<double>(replica().timeout().count()));
  throw sdk::Error(HEXAD_UNAVAILABLE, text);
}

// Of rank 0: sends the turn, and asks about cancellation when it is time.
void Turns::lead(const sdk::Call& call, Turn& turn) {
  const auto now = Clock::now();
  const bool cancelled = call.cancelled();
  turn.asks = cancelled || now >= next_question_;
  lockstep_.send(turn);
  if (!turn.asks) return;
  next_question_ = now + kAskEvery;
  if (lockstep_.any(cancelled)) called_off_ = true;
}

Mailbox::Sequences Turns::arrivals(const sdk::Call& call, const Turn& turn) {
  Mailbox::Sequences sequences;
  if (turn.arrived.empty()) return sequences;
  together(call, [&] {
    // Half of the time that the others wait for this rank: they are to hear why.
    const auto patience = replica().alone() ? std::chrono::milliseconds(0) : replica().timeout() / 2;
    sequences = mailbox_.take(turn.arrived, patience);
  });
  return sequences;
}

void Turns::together(const sdk::Call& call, const std::function<void()>& body) {
  on_device(call, device_, [&] { in_turn_.together(body); });
}

void Turns::announce(const sdk::Call& call, uint64_t digest) {
  if (!lockstep_.leads()) return;
  Turn turn;
  turn.apart = true, turn.digest = digest;
  on_device(call, device_, [&] { lockstep_.send(turn); });
}

bool Turns::take_called_off(const sdk::Call& call) {
  return replica().alone() ? call.cancelled() : called_off_.exchange(false);
}

}  // namespace hexad::native
