#include "core/cluster/worker/choose_device.hpp"

#include "lib/base/error.hpp"

namespace hexad::cluster {

DLDevice choose_device(const hexad_runtime* runtime, const std::string& wanted, int rank, int ranks) {
  if (wanted == "cpu") return {kDLCPU, 0};
  const bool has_cuda = runtime && *runtime->cuda_version();
  const int gpus = has_cuda ? runtime->cuda_device_count() : 0;
  if (gpus >= ranks) return {kDLCUDA, rank};
  if (wanted == "auto") return {kDLCPU, 0};
  if (!has_cuda)
    fail(ErrorKind::config,
         "cluster.device is '{}', but this build has no CUDA. Build it with `make build PRESET=cuda`, or set "
         "cluster.device=cpu",
         wanted);
  if (gpus == 0)
    fail(ErrorKind::config,
         "cluster.device is '{}', but this machine has no GPU: CUDA finds none (see nvidia-smi and "
         "CUDA_VISIBLE_DEVICES). Set cluster.device=cpu to run without",
         wanted);
  fail(ErrorKind::config,
       "cluster.device is '{}' and cluster.gpus_per_node {}, but CUDA finds {} here. Set cluster.gpus_per_node to at "
       "most that, or cluster.device=cpu",
       wanted, ranks, gpus);
}

}  // namespace hexad::cluster
