// The parts of a worker that its commands share.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/cluster/worker/disk_sync.hpp"
#include "core/cluster/message/message.hpp"
#include "core/cluster/refit/part.hpp"
#include "core/cluster/serving.hpp"
#include "core/cluster/worker/link.hpp"
#include "core/plugin/kind/instance.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/metric_sum.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "runtime/runtime.h"

namespace hexad::cluster {

struct WorkerState {
  WorkerState(const Bootstrap& bootstrap, WorkerLink& link) : bootstrap(bootstrap), rank(bootstrap.rank), link(link) {}
  ~WorkerState();  // instances, then process groups

  // The context of a call into a plugin at the current step; host->metric lands in `metrics`.
  plugin::CallContext context();
  // The instance, or an Error(worker) that says that the command needs one.
  plugin::BackendPlugin& need_backend(const char* command) const;
  plugin::GeneratorPlugin& need_generator(const char* command) const;

  const Bootstrap bootstrap;
  int rank;
  WorkerLink& link;
  const hexad_runtime* runtime = nullptr;
  bool runtime_started = false;
  DLDevice device{kDLCPU, 0};
  bool deterministic = false;
  int64_t step = 0;
  plugin::LogitTransform transform;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::unique_ptr<plugin::Registry> registry;
  std::unique_ptr<plugin::BackendPlugin> backend;
  std::unique_ptr<plugin::LossPlugin> loss;
  std::unique_ptr<plugin::GeneratorPlugin> generator;
  plugin::MetricSum metrics;       // of the running command
  Serving serving;                 // requests that run between commands
  std::optional<RefitPart> refit;  // of a rank that trains or generates alone
  DiskSync saving;                 // of the newest checkpoint
};

// The commands, one file each group. Each takes the command's message and returns its answer.
namespace command {
Message start(WorkerState& state, const Message& message);    // start.cpp
Message forward(WorkerState& state, const Message& message);  // training.cpp
Message train(WorkerState& state, const Message& message);
Message step(WorkerState& state, const Message& message);
Message evaluate(WorkerState& state, const Message& message);  // evaluation.cpp
Message generate(WorkerState& state, const Message& message);  // generation.cpp
Message submit(WorkerState& state, const Message& message);    // serving.cpp
Message cancel(WorkerState& state, const Message& message);
Message refit(WorkerState& state, const Message& message);         // weights.cpp
Message refit_layout(WorkerState& state, const Message& message);  // refit.cpp
Message refit_connect(WorkerState& state, const Message& message);
Message refit_apart(WorkerState& state, const Message& message);
Message weight_sums(WorkerState& state, const Message& message);
Message keep(WorkerState& state, const Message& message);
Message save(WorkerState& state, const Message& message);
Message saved(WorkerState& state, const Message& message);
Message load(WorkerState& state, const Message& message);
Message offload(WorkerState& state, const Message& message);
Message onload(WorkerState& state, const Message& message);
Message sleep(WorkerState& state, const Message& message);
Message wake(WorkerState& state, const Message& message);
Message trace(WorkerState& state, const Message& message);  // trace.cpp
}  // namespace command

}  // namespace hexad::cluster
