// How a generator takes its turns: alone as they come, in a replica of several ranks as rank 0 says.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "plugins/native/device_scope.hpp"
#include "plugins/native/generator.hpp"
#include "plugins/native/parallel/digest.hpp"

namespace hexad::native {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(50);

}  // namespace

std::optional<Turn> Generator::next_turn(const sdk::Call& call) {
  if (lockstep_->follows()) {
    if (apart_) {
      require_in_time();
      return std::nullopt;
    }
    Turn turn;
    on_device(call, settings_.device, [&] {
      turn = lockstep_->receive(engine_->digest());
      if (turn.asks && lockstep_->any(call.cancelled())) called_off_ = true;
    });
    const std::lock_guard lock(state_mutex_);
    dirty_ = false;
    if (!turn.apart) return turn;
    apart_ = true, apart_until_ = std::chrono::steady_clock::now() + lockstep_->replica().timeout();
    return std::nullopt;
  }
  Turn turn;
  turn.digest = engine_->digest();
  {
    const std::lock_guard lock(state_mutex_);
    for (const auto& sequence : inbox_) turn.arrived.push_back({sequence->request.id, digest_of(sequence->request)});
    turn.cancelled.swap(cancelled_);
    dirty_ = false;
  }
  if (lockstep_->leads()) on_device(call, settings_.device, [&] { lead(call, turn); });
  return turn;
}

void Generator::require_in_time() const {
  if (std::chrono::steady_clock::now() < apart_until_) return;
  const Replica& replica = lockstep_->replica();
  const std::string text = fmt::format(
      "{}: rank 0 of it has begun what comes between two passes (an update, pause, resume, sleep, wake, flush_cache or "
      "weight_layout), and rank {} was not called so within {} s: make the same calls on every rank",
      replica.name(), replica.shard().rank, 1e-3 * static_cast<double>(replica.timeout().count()));
  throw sdk::Error(HEXAD_UNAVAILABLE, text);
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

std::vector<std::unique_ptr<Sequence>> Generator::take_from_inbox(const std::vector<Arrival>& arrived) {
  std::vector<std::unique_ptr<Sequence>> taken;
  std::unique_lock lock(state_mutex_);
  size_t place = 0;  // they mostly come in the order of the inbox
  for (const Arrival& arrival : arrived) {
    const auto is_it = [&](const auto& sequence) { return sequence && sequence->request.id == arrival.id; };
    const auto there = [&] {
      if (place < inbox_.size() && is_it(inbox_[place])) return true;
      place = static_cast<size_t>(std::ranges::find_if(inbox_, is_it) - inbox_.begin());
      return place < inbox_.size();
    };
    // Half of the time that the others wait for this rank: they are to hear why.
    if (!there() && !changed_.wait_for(lock, lockstep_->replica().timeout() / 2, there)) {
      sdk::fail(HEXAD_FAILED_PRECONDITION,
                "request %llu, which rank 0 runs, was not submitted here: submit the same requests to every rank",
                static_cast<unsigned long long>(arrival.id));
    }
    if (const uint64_t digest = digest_of(inbox_[place]->request); digest != arrival.digest) {
      sdk::fail(HEXAD_FAILED_PRECONDITION,
                "request %llu is not what rank 0 was given under this number (digest %016llx, rank 0 has %016llx): "
                "submit the same requests to every rank",
                static_cast<unsigned long long>(arrival.id), static_cast<unsigned long long>(digest),
                static_cast<unsigned long long>(arrival.digest));
    }
    taken.push_back(std::move(inbox_[place++]));
  }
  std::erase(inbox_, nullptr);
  return taken;
}

void Generator::add_arrivals(const sdk::Call& call, const std::vector<Arrival>& arrived) {
  if (arrived.empty()) return;
  std::vector<std::unique_ptr<Sequence>> sequences;
  on_device(call, settings_.device, [&] { in_turn_->together([&] { sequences = take_from_inbox(arrived); }); });
  for (auto& sequence : sequences) engine_->add(std::move(sequence));
}

void Generator::make_cache(const sdk::Call& call) {
  try {
    on_device(call, settings_.device, [&] { in_turn_->together([&] { engine_->make_cache(); }); });
  } catch (...) {
    engine_->drop_cache();  // on all, or the next turn would ask some alone
    throw;
  }
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
