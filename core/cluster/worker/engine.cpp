#include "core/cluster/worker/engine.hpp"

#include <optional>

#include "lib/base/error.hpp"
#include "core/cluster/worker/state.hpp"

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

}  // namespace

WorkerState::~WorkerState() {
  serving.stop();
  generator.reset();
  loss.reset();
  backend.reset();
  if (runtime_started) runtime->stop();
}

plugin::CallContext WorkerState::context() {
  plugin::CallContext context;
  context.step = step;
  context.flags = deterministic ? HEXAD_CALL_DETERMINISTIC : 0;
  context.cancelled = &link.cancelled();
  context.device = device;
  context.metric = [this](const plugin::Metric& metric) {
    metrics.add(metric.name, metric.value, metric.weight, static_cast<plugin::ReduceAs>(metric.reduce));
  };
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
  using Command = Message (*)(WorkerState&, const Message&);
  static const std::map<std::string, Command> commands = {{"start", command::start},
                                                          {"forward", command::forward},
                                                          {"train", command::train},
                                                          {"step", command::step},
                                                          {"evaluate", command::evaluate},
                                                          {"generate", command::generate},
                                                          {"refit", command::refit},
                                                          {"keep", command::keep},
                                                          {"save", command::save},
                                                          {"saved", command::saved},
                                                          {"load", command::load},
                                                          {"offload", command::offload},
                                                          {"onload", command::onload},
                                                          {"trace", command::trace},
                                                          {"sleep", command::sleep},
                                                          {"wake", command::wake},
                                                          {"weight_sums", command::weight_sums},
                                                          {"refit_layout", command::refit_layout},
                                                          {"refit_connect", command::refit_connect},
                                                          {"submit", command::submit},
                                                          {"cancel_requests", command::cancel}};
  const std::string name = message.header.value("command", "");
  const auto found = commands.find(name);
  if (found == commands.end()) fail(ErrorKind::worker, "unknown command '{}'", name);
  state_->step = message.header.value("step", state_->step);
  state_->metrics = {};
  std::optional<NamedRange> range;
  if (state_->runtime_started) range.emplace(*state_->runtime, name);
  return found->second(*state_, message);
}

}  // namespace hexad::cluster
