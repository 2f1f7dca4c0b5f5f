// How vLLM before 0.30 learns a communicator's id: from a torch TCPStore of the trainer's, under one key, as a pickle.
// Source: vLLM's StatelessProcessGroup.create and broadcast_obj.
#pragma once
#include <memory>
#include <string>

#include "modeling/refit/nccl/sender.hpp"

namespace hexad::vllm {

using refit::UniqueId;

// A store that lives until all have read the id.
class Rendezvous {
 public:
  // Listens on `address` (an IPv4 address of this host) at a free port. Throws sdk::Error if it cannot.
  Rendezvous(const std::string& address, const UniqueId& id);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  int port() const { return port_; }

 private:
  struct Store;
  std::unique_ptr<Store> store_;
  int port_ = 0;
};

}  // namespace hexad::vllm
