#include "plugins/native/parallel/lockstep.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <hexad/services.hpp>

#include <algorithm>

namespace hexad::native {
namespace {

// A turn is one message of this many numbers, and a second one for ids that it has no room for.
constexpr size_t kNumbers = 64, kHead = 4;
constexpr int64_t kApart = 1, kAsks = 2;

using Numbers = std::vector<int64_t>;

void broadcast(const Replica& replica, Numbers& numbers) {
  replica.broadcast(at::from_blob(numbers.data(), {static_cast<int64_t>(numbers.size())}, at::kLong));
}

Numbers numbers_of(const Turn& turn) {
  Numbers numbers = {(turn.apart ? kApart : 0) | (turn.asks ? kAsks : 0), static_cast<int64_t>(turn.digest),
                     static_cast<int64_t>(turn.arrived.size()), static_cast<int64_t>(turn.cancelled.size())};
  for (const Arrival& arrival : turn.arrived) {
    numbers.push_back(static_cast<int64_t>(arrival.id));
    numbers.push_back(static_cast<int64_t>(arrival.digest));
  }
  numbers.insert(numbers.end(), turn.cancelled.begin(), turn.cancelled.end());
  return numbers;
}

}  // namespace

void Lockstep::send(const Turn& turn) const {
  Numbers numbers = numbers_of(turn), rest;
  if (numbers.size() > kNumbers) rest.assign(numbers.begin() + kNumbers, numbers.end());
  numbers.resize(kNumbers);
  broadcast(replica_, numbers);
  if (!rest.empty()) broadcast(replica_, rest);
}

Turn Lockstep::receive(uint64_t digest) const {
  Numbers numbers(kNumbers);
  broadcast(replica_, numbers);
  const auto arrived = static_cast<size_t>(numbers[2]), cancelled = static_cast<size_t>(numbers[3]);
  if (const size_t size = kHead + 2 * arrived + cancelled; size > kNumbers) {
    Numbers rest(size - kNumbers);
    broadcast(replica_, rest);
    numbers.insert(numbers.end(), rest.begin(), rest.end());
  }
  Turn turn{.apart = (numbers[0] & kApart) != 0,
            .asks = (numbers[0] & kAsks) != 0,
            .digest = static_cast<uint64_t>(numbers[1]),
            .arrived = {},
            .cancelled = {}};
  auto next = numbers.begin() + kHead;
  for (size_t i = 0; i < arrived; ++i, next += 2)
    turn.arrived.push_back({static_cast<uint64_t>(next[0]), static_cast<uint64_t>(next[1])});
  turn.cancelled.assign(next, next + static_cast<int64_t>(cancelled));
  if (turn.digest == digest) return turn;
  const std::string text = fmt::format(
      "{}: rank {} of it has drawn other tokens than rank 0, or ended a request otherwise (digest {:016x}, rank 0 has "
      "{:016x}): wanted the same weights, tokenizer and settings on every rank",
      replica_.name(), replica_.shard().rank, digest, turn.digest);
  throw sdk::Error(HEXAD_INTERNAL, text);
}

}  // namespace hexad::native
