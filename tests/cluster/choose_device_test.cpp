// What ranks run on, on machines with and without GPUs, in builds with and without CUDA.
#include "core/cluster/worker/engine.hpp"

#include <doctest/doctest.h>

#include "tests/support/toy/toy.hpp"

using hexad::cluster::choose_device;

namespace {

int gpus_here = 0;

// A build with CUDA on a machine of so many GPUs.
const hexad_runtime* machine(int gpus) {
  static const hexad_runtime table = [] {
    hexad_runtime made{};
    made.cuda_version = [] { return "13.0"; };
    made.cuda_device_count = [] { return gpus_here; };
    return made;
  }();
  gpus_here = gpus;
  return &table;
}

const hexad_runtime* without_cuda() {
  static const hexad_runtime table = [] {
    hexad_runtime made{};
    made.cuda_version = [] { return ""; };
    made.cuda_device_count = [] { return 0; };
    return made;
  }();
  return &table;
}

bool is(DLDevice device, DLDeviceType type, int id) { return device.device_type == type && device.device_id == id; }

std::string refusal(const hexad_runtime* runtime, int rank, int ranks, const char* wanted = "cuda") {
  try {
    choose_device(runtime, wanted, rank, ranks);
  } catch (const hexad::Error& error) {
    CHECK(error.exit_code() == 2);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("auto takes a GPU for each rank, the CPU where there is none, and refuses too few") {
  CHECK(is(choose_device(machine(2), "auto", 1, 2), kDLCUDA, 1));
  CHECK(is(choose_device(machine(8), "auto", 3, 4), kDLCUDA, 3));
  CHECK(is(choose_device(machine(0), "auto", 1, 2), kDLCPU, 0));
  for (int rank : {0, 1})  // all ranks alike
    CHECK(refusal(machine(1), rank, 2, "auto") ==
          "cluster.device is 'auto' and cluster.gpus_per_node 2, but CUDA finds 1 GPU here. Set cluster.gpus_per_node "
          "to at most that, or cluster.device=cpu to use none. A launcher that shows each rank one GPU (srun "
          "--gpus-per-task) has to show all (--gpus-per-node)");
  CHECK(is(choose_device(machine(0), "auto", 0, 1), kDLCPU, 0));
  CHECK(is(choose_device(without_cuda(), "auto", 0, 1), kDLCPU, 0));
  CHECK(is(choose_device(nullptr, "auto", 0, 1), kDLCPU, 0));
}

TEST_CASE("cpu is the CPU, and cuda a GPU, whatever there is") {
  CHECK(is(choose_device(machine(8), "cpu", 0, 1), kDLCPU, 0));
  CHECK(is(choose_device(nullptr, "cpu", 0, 1), kDLCPU, 0));
  CHECK(is(choose_device(machine(2), "cuda", 1, 2), kDLCUDA, 1));
}

TEST_CASE("cuda without enough GPUs is refused with what is there and what to do, alike on every rank") {
  const std::string no_cuda =
      "cluster.device is 'cuda', but this build has no CUDA. Build it with `make build PRESET=cuda`, or set "
      "cluster.device=cpu";
  CHECK(refusal(nullptr, 0, 1) == no_cuda);
  CHECK(refusal(without_cuda(), 0, 1) == no_cuda);
  CHECK(refusal(machine(0), 0, 1) ==
        "cluster.device is 'cuda', but this machine has no GPU: CUDA finds none (see nvidia-smi and "
        "CUDA_VISIBLE_DEVICES). Set cluster.device=cpu to run without");
  for (int rank : {0, 1, 3})
    CHECK(refusal(machine(2), rank, 4) ==
          "cluster.device is 'cuda' and cluster.gpus_per_node 4, but CUDA finds 2 GPUs here. Set cluster.gpus_per_node "
          "to at most that, or cluster.device=cpu to use none");
}
