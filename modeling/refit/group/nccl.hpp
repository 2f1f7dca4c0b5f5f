// A group of processes over NCCL whose others are torch.distributed's, which is named and met over tcp://. Rank 0 is no
// c10d::ProcessGroupNCCL: the thread that watches over one ends its process when another rank is lost.
#pragma once
#include <memory>
#include <string>

#include "modeling/refit/group/store.hpp"
#include "modeling/refit/nccl/sender.hpp"

namespace hexad::refit {

class NcclGroup : public Sender {
 public:
  struct Place {
    std::string name;  // of the group
    int ranks = 0, device_id = 0;
    std::string advice;  // as NcclSender's
  };
  // Waits for nobody: the others join when they take part in the first message, which may be before.
  NcclGroup(std::unique_ptr<Store> store, Place place);

  void broadcast(uintptr_t data, size_t bytes, const GiveUp& give_up) override;
  void wait(const GiveUp& give_up) override { sender_->wait(give_up); }

  // Where the others look for the communicator's id: the key of the first one that a group makes.
  static std::string id_key(const std::string& name);

 private:
  const std::unique_ptr<Store> store_;  // the others may ask it as long as they are in the group
  const Place place_;
  const UniqueId id_;
  std::unique_ptr<NcclSender> sender_;  // from the first message on
};

}  // namespace hexad::refit
