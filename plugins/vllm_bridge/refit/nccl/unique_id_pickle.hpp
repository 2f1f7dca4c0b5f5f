// A communicator's id as vLLM's workers unpickle it: a ctypes structure.
// Source: vLLM's pynccl_wrapper.ncclUniqueId, StatelessProcessGroup.broadcast_obj.
#pragma once
#include <string>

#include "plugins/vllm_bridge/refit/nccl/library.hpp"

namespace hexad::vllm {

std::string unique_id_pickle(const UniqueId& id);

}  // namespace hexad::vllm
