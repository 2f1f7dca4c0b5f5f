// What a worker hosts: runtime, plugins, tokenizer; and the commands that the controller gives it.
#pragma once
#include <memory>

#include "core/cluster/message/message.hpp"
#include "core/cluster/worker/link.hpp"

namespace hexad::cluster {

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
