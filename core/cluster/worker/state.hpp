// The parts of a worker that its commands share.
#pragma once
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/cluster/protocol/protocol.hpp"
#include "core/cluster/serving.hpp"
#include "core/cluster/worker/link.hpp"
#include "core/plugin/kind/backend_plugin.hpp"
#include "core/plugin/kind/generator_plugin.hpp"
#include "core/plugin/kind/loss_plugin.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/metric_sum.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "runtime/runtime.h"

namespace hexad::cluster {

// A checkpoint's files on their way from the page cache to the disk, beside the worker's other work. One thread's at a
// time.
class DiskSync {
 public:
  // Syncs all below these folders, each on its file's own: what a network file system or a quota has against it is said
  // here, and not by the write before it. Waits for a sync that is under way.
  void start(std::vector<std::filesystem::path> folders);

  // Whether all of it is on the disk, or waits for `patience`. Throws Error(data) with what failed, once.
  bool done(std::chrono::milliseconds patience);

 private:
  std::future<void> running_;
};

struct WorkerState {
  WorkerState(const Bootstrap& bootstrap, WorkerLink& link) : bootstrap(bootstrap), rank(bootstrap.rank), link(link) {}
  ~WorkerState();  // instances, then process groups

  // Adds what a plugin reports to `metrics`, but for names under which the engine itself counts.
  void add_reported(const plugin::Metric& metric);
  // The context of a call into a plugin at the current step; host->metric lands in `metrics`.
  plugin::CallContext context();
  // The instance, or an Error(worker) that says that the command needs one.
  plugin::BackendPlugin& need_backend(const char* command) const;
  plugin::GeneratorPlugin& need_generator(const char* command) const;
  // Tells the controller how far the command has come, every half second at most.
  void tell(const protocol::Progress& progress);

  const Bootstrap bootstrap;
  int rank;
  WorkerLink& link;
  const hexad_runtime* runtime = nullptr;
  bool runtime_started = false;
  DLDevice device{kDLCPU, 0};
  bool deterministic = false;
  int64_t step = 0;
  std::chrono::steady_clock::time_point told = std::chrono::steady_clock::now();  // of progress
  double timeout_s = 600;                                                         // cluster.worker_timeout_s
  int64_t vocabulary = 0;  // ids of the model that generates; 0: unknown
  plugin::LogitTransform transform;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::unique_ptr<plugin::Registry> registry;
  std::unique_ptr<plugin::BackendPlugin> backend;
  std::unique_ptr<plugin::LossPlugin> loss;
  std::unique_ptr<plugin::GeneratorPlugin> generator;
  plugin::MetricSum metrics;          // of the running command
  Serving serving;                    // requests that run between commands
  std::optional<RefitPart> refit;     // of a rank that trains or generates alone
  hexad_comm* refit_group = nullptr;  // which carries it out
  DiskSync saving;                    // of the newest checkpoint
};

// The commands, one file each group. Each takes the command and returns its reply; what it throws is reported instead.
namespace command {
protocol::Start::Reply start(WorkerState& state, const protocol::Start& start);          // start.cpp
protocol::Nothing trace(WorkerState& state, const protocol::Trace& trace);               // trace.cpp
protocol::Forward::Reply forward(WorkerState& state, const protocol::Forward& forward);  // training.cpp
protocol::LossReply train(WorkerState& state, const protocol::Train& train);
protocol::Step::Reply step(WorkerState& state, const protocol::Step& step);
protocol::LossReply evaluate(WorkerState& state, const protocol::Evaluate& evaluate);        // evaluation.cpp
protocol::Generate::Reply generate(WorkerState& state, const protocol::Generate& generate);  // generation.cpp
protocol::Nothing submit(WorkerState& state, const protocol::Submit& submit);
protocol::Nothing cancel(WorkerState& state, const protocol::CancelRequests& cancel);
protocol::Nothing sleep(WorkerState& state, const protocol::Sleep& sleep);
protocol::Nothing wake(WorkerState& state, const protocol::Wake& wake);
protocol::Refit::Reply refit(WorkerState& state, const protocol::Refit& refit);        // weights.cpp
protocol::Refit::Reply refit_apart(WorkerState& state, const protocol::Refit& refit);  // refit.cpp
protocol::RefitLayout::Reply refit_layout(WorkerState& state, const protocol::RefitLayout& layout);
protocol::Nothing refit_connect(WorkerState& state, const protocol::RefitConnect& connect);
protocol::WeightSums::Reply weight_sums(WorkerState& state, const protocol::WeightSums& sums);  // weights.cpp
protocol::Nothing keep(WorkerState& state, const protocol::Keep& keep);
protocol::Save::Reply save(WorkerState& state, const protocol::Save& save);
protocol::Saved::Reply saved(WorkerState& state, const protocol::Saved& saved);
protocol::Nothing load(WorkerState& state, const protocol::Load& load);
}  // namespace command

}  // namespace hexad::cluster
