// A step that every rank of a replica takes, or none: what one of them refuses keeps no other waiting.
#pragma once
#include <functional>
#include <string>

#include "plugins/native/parallel/replica.hpp"

namespace hexad::native {

class Agreement {
 public:
  // Over one of the replica's groups: aside() for steps beside the order of passes, in_order() for those within it.
  Agreement(Replica replica, const modeling::Group& group) : replica_(std::move(replica)), group_(group) {}

  // Runs `body` and returns when it has ended on every rank. If it throws on one, every rank throws that one's code and
  // text, with its number (sdk::Error); of several, the first one's. A rank that does not come: see Replica. One rank
  // alone throws what `body` throws.
  void together(const std::function<void()>& body) const;
  // Of a rank that will not take the step: what the others throw when they come to it. Does not wait for them.
  void decline(const std::string& reason) const;

 private:
  Replica replica_;
  modeling::Group group_;
};

}  // namespace hexad::native
