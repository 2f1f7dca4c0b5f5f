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
  for (const auto* ids : {&turn.arrived, &turn.cancelled}) numbers.insert(numbers.end(), ids->begin(), ids->end());
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
  if (const size_t size = kHead + arrived + cancelled; size > kNumbers) {
    Numbers rest(size - kNumbers);
    broadcast(replica_, rest);
    numbers.insert(numbers.end(), rest.begin(), rest.end());
  }
  Turn turn{.apart = (numbers[0] & kApart) != 0,
            .asks = (numbers[0] & kAsks) != 0,
            .digest = static_cast<uint64_t>(numbers[1]),
            .arrived = {},
            .cancelled = {}};
  const auto ids = numbers.begin() + kHead;
  turn.arrived.assign(ids, ids + static_cast<int64_t>(arrived));
  turn.cancelled.assign(ids + static_cast<int64_t>(arrived), ids + static_cast<int64_t>(arrived + cancelled));
  if (turn.digest == digest) return turn;
  const std::string text = fmt::format(
      "{}: rank {} of it was given other requests than rank 0, or has drawn other tokens (digest {:016x}, rank 0 has "
      "{:016x}): submit the same requests to every rank, with the same weights and settings",
      replica_.name(), replica_.shard().rank, digest, turn.digest);
  throw sdk::Error(HEXAD_INTERNAL, text);
}

}  // namespace hexad::native
