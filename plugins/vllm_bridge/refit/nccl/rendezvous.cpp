#include "plugins/vllm_bridge/refit/nccl/rendezvous.hpp"

#include "modeling/refit/group/store.hpp"
#include "plugins/vllm_bridge/refit/pickle.hpp"

namespace hexad::vllm {

struct Rendezvous::Store {
  refit::Store tcp;
};

Rendezvous::Rendezvous(const std::string& address, const UniqueId& id)
    : store_(new Store{{address, "policy.generation.vllm_cfg.refit_address"}}), port_(store_->tcp.port()) {
  store_->tcp.set("broadcast_from/0/0", unique_id_pickle(id));  // the first object that rank 0 sends
}

Rendezvous::~Rendezvous() = default;

}  // namespace hexad::vllm
