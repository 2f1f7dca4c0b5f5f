// What a worker hosts: runtime, plugins, tokenizer; and the commands that the controller gives it.
#pragma once
#include <memory>
#include <string>

#include "core/cluster/message/message.hpp"
#include "core/cluster/worker/link.hpp"
#include "runtime/runtime.h"

namespace hexad::cluster {

// What a rank runs on, by cluster.device. Rank r of `ranks` gets GPU r; `auto` takes CPUs on a machine without any.
// `runtime`: null in a build without LibTorch. Throws Error(config) where there are fewer GPUs than ranks, the same on
// every rank.
DLDevice choose_device(const hexad_runtime* runtime, const std::string& wanted, int rank, int ranks);

struct WorkerState;

class WorkerEngine {
 public:
  WorkerEngine(const Bootstrap& bootstrap, WorkerLink& link);
  ~WorkerEngine();  // instances first, then process groups

  // Carries out one command and returns its answer. Throws Error; the worker reports it and goes on serving.
  Message handle(const Message& command);

  // Requests run that outlive their command: hand_out() sends what has ended as an event, and throws what broke off.
  bool serves() const;
  void hand_out();

 private:
  std::unique_ptr<WorkerState> state_;
};

}  // namespace hexad::cluster
