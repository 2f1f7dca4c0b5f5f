// How the ranks of a replica do the same in every pass. Each has an engine of its own, is given the same requests, and
// draws the same tokens; what depends on time is decided by rank 0: when a request joins, when one is cancelled, and
// between which passes a set of weights, a pause or sleep takes effect. It says so in a turn before each pass, and the
// others follow. Now and then a turn asks them: what one rank's host has called off ends on all.
#pragma once
#include <cstdint>

#include "plugins/native/parallel/replica.hpp"
#include "plugins/native/parallel/turn.hpp"

namespace hexad::native {

class Lockstep {
 public:
  explicit Lockstep(Replica replica) : replica_(std::move(replica)) {}

  bool leads() const { return !replica_.alone() && replica_.shard().rank == 0; }
  bool follows() const { return !replica_.alone() && replica_.shard().rank != 0; }
  const Replica& replica() const { return replica_; }

  // Waits until the other ranks are here, or throws at the group's timeout.
  void send(const Turn& turn) const;
  // The next turn of rank 0. Throws (sdk::Error, internal) when it has drawn other tokens than this rank, whose digest
  // is given.
  Turn receive(uint64_t digest) const;
  // After a turn that asks: whether any rank says so.
  bool any(bool says_so) const { return replica_.smallest(says_so ? 0 : 1) == 0; }

 private:
  Replica replica_;
};

}  // namespace hexad::native
