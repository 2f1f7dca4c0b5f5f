// A group of processes over gloo, as torch.distributed makes one that is named and met over tcp://.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "modeling/refit/group/store.hpp"
#include "modeling/refit/sender.hpp"

namespace hexad::refit {

class GlooGroup : public Sender {
 public:
  struct Place {
    std::string name;     // of the group
    std::string address;  // of this host, IPv4, on which the others reach it
    int rank = 0, ranks = 0;
    std::chrono::milliseconds patience{0};  // with connections and messages, at most
  };
  // Waits for the others. Throws sdk::Error when it is given up, or one cannot be reached.
  GlooGroup(const Store& store, const Place& place, GiveUp give_up);
  // A message that is under way is waited for, for the group's patience at most; it fails at once when the others close
  // their ends.
  ~GlooGroup() override;
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  // From rank 0 into memory of the host; of every other rank it is written.
  void broadcast(uintptr_t data, size_t bytes, const GiveUp& give_up) override;
  void wait(const GiveUp& give_up) override;

 private:
  struct Group;
  std::unique_ptr<Group> group_;
};

}  // namespace hexad::refit
