#include "core/cluster/worker/engine.hpp"

#include <optional>

#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/said/reported.hpp"

namespace hexad::cluster {
namespace {

// The command, as profilers show it.
class NamedRange {
 public:
  NamedRange(const hexad_runtime& runtime, const std::string& name) : runtime_(runtime) {
    runtime.range_push(name.c_str());
  }
  ~NamedRange() { runtime_.range_pop(); }
  NamedRange(const NamedRange&) = delete;

 private:
  const hexad_runtime& runtime_;
};

// Carries out the command of a message.
using Carry = std::function<Message(WorkerState&, const Message&)>;

template <typename Command>
std::pair<const std::string, Carry> entry(typename Command::Reply (*handle)(WorkerState&, const Command&)) {
  return {protocol::name_of<Command>(), [handle](WorkerState& state, const Message& message) {
            return protocol::to_message(handle(state, protocol::from_message<Command>(message)));
          }};
}

}  // namespace

void DiskSync::start(std::vector<std::filesystem::path> folders) {
  running_ = std::async(std::launch::async, [folders = std::move(folders)] {
    for (const std::filesystem::path& folder : folders) sync_tree(folder);
  });
}

bool DiskSync::done(std::chrono::milliseconds patience) {
  if (!running_.valid()) return true;
  if (running_.wait_for(patience) != std::future_status::ready) return false;
  running_.get();
  return true;
}

WorkerState::~WorkerState() {
  serving.stop();
  generator.reset();
  loss.reset();
  backend.reset();
  if (runtime_started) runtime->stop();
}

void WorkerState::add_reported(const plugin::Metric& metric) {
  if (metric.name == "loss" || metric.name.starts_with("global_valid_") ||
      (metric.name.starts_with("memory_") && metric.name.ends_with("_gib")))
    return say_name_is_taken(metric.name);
  metrics.add(metric.name, metric.value, metric.weight, static_cast<plugin::ReduceAs>(metric.reduce));
}

plugin::CallContext WorkerState::context() {
  plugin::CallContext context;
  context.step = step;
  context.flags = deterministic ? HEXAD_CALL_DETERMINISTIC : 0;
  context.cancelled = &link.cancelled();
  context.device = device;
  context.metric = [this](const plugin::Metric& metric) { add_reported(metric); };
  if (tokenizer) {
    context.detokenize = [this](std::span<const int32_t> ids) {
      return tokenizer->decode(ids, /*skip_special_tokens=*/false);
    };
  }
  return context;
}

plugin::BackendPlugin& WorkerState::need_backend(const char* command) const {
  if (!backend)
    fail(ErrorKind::worker, "'{}' needs a training backend, and this worker was started without one", command);
  return *backend;
}

void WorkerState::tell(const protocol::Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (now - told < std::chrono::milliseconds(500)) return;
  told = now;
  link.event(progress);
}

plugin::GeneratorPlugin& WorkerState::need_generator(const char* command) const {
  if (!generator) fail(ErrorKind::worker, "'{}' needs a generator, and this worker was started without one", command);
  return *generator;
}

WorkerEngine::WorkerEngine(const Bootstrap& bootstrap, WorkerLink& link)
    : state_(std::make_unique<WorkerState>(bootstrap, link)) {}
WorkerEngine::~WorkerEngine() = default;

bool WorkerEngine::serves() const { return state_->serving.serves(); }

void WorkerEngine::hand_out() { state_->serving.hand_out(*state_); }

Message WorkerEngine::handle(const Message& message) {
  static const std::map<std::string, Carry> commands = {
      entry(command::start),       entry(command::forward),       entry(command::train),  entry(command::step),
      entry(command::evaluate),    entry(command::generate),      entry(command::submit), entry(command::cancel),
      entry(command::sleep),       entry(command::wake),          entry(command::refit),  entry(command::refit_layout),
      entry(command::weight_sums), entry(command::refit_connect), entry(command::keep),   entry(command::save),
      entry(command::saved),       entry(command::load),          entry(command::trace)};
  const auto found = commands.find(message.command);
  if (found == commands.end()) fail(ErrorKind::worker, "unknown command '{}'", message.command);
  state_->step = message.step;
  state_->metrics = {};
  std::optional<NamedRange> range;
  if (state_->runtime_started) range.emplace(*state_->runtime, message.command);
  return found->second(*state_, message);
}

}  // namespace hexad::cluster
