// In a build without CUDA there is no NCCL to meet for.
#include "plugins/vllm_bridge/refit/nccl/rendezvous.hpp"

namespace hexad::vllm {

struct Rendezvous::Store {};

Rendezvous::Rendezvous(const std::string&, const UniqueId&) {
  sdk::fail(HEXAD_UNIMPLEMENTED,
            "weight update by NCCL: this build is without CUDA. Build with the preset cuda, or set "
            "policy.generation.refit_transport to disk");
}

Rendezvous::~Rendezvous() = default;

}  // namespace hexad::vllm
