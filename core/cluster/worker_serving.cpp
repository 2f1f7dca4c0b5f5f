// Commands on requests that outlive them, and what goes on between commands.
#include "core/base/error.hpp"
#include "core/cluster/completion_columns.hpp"
#include "core/cluster/worker_state.hpp"

namespace hexad::cluster {
namespace {

// A command waits no longer than this and a pass of the model.
constexpr int64_t kSliceMs = 20;

}  // namespace

void Serving::add(const data::Batch& prompts, bool reports) {
  for (int64_t i = 0; i < prompts.size(); ++i)
    running_[static_cast<uint64_t>(prompts.row<int64_t>("id", i)[0])] = {prompts.length(i), reports};
}

plugin::CallContext Serving::context(WorkerState& state) {
  plugin::CallContext context = state.context();
  context.metric = [this](const plugin::Metric& metric) {
    metrics_.add(metric.name, metric.value, metric.weight, static_cast<plugin::ReduceAs>(metric.reduce));
  };
  return context;
}

bool Serving::take(const hexad_completion& event) {
  const auto found = running_.find(event.id);
  if (found == running_.end()) return false;
  if (event.finish == HEXAD_FINISH_NONE) return true;
  const Running request = found->second;
  running_.erase(found);
  if (!request.reports) return true;
  const bool failed = event.finish == HEXAD_FINISH_ERROR;
  ids_.push_back(event.id);
  errors_.push_back(!failed ? "" : event.error ? event.error : "failed without a reason");
  completions_.push_back(failed ? Completion{} : completion_of(event));
  columns_.push_back(failed ? data::Batch::of_lengths(std::vector<int64_t>{request.prompt_tokens})
                            : columns_of("the generator", event, request.prompt_tokens));
  return true;
}

void Serving::hand_out(WorkerState& state) {
  if (ids_.empty()) return;
  Message message;
  message.header["ids"] = ids_;
  message.header["errors"] = errors_;
  message.header["metrics"] = std::exchange(metrics_, {}).to_json();
  message.put("completions", to_batch(completions_));
  for (size_t i = 0; i < columns_.size(); ++i) message.put(fmt::format("columns{}", i), columns_[i]);
  state.link.event("completions", std::move(message));
  ids_.clear(), errors_.clear(), completions_.clear(), columns_.clear();
}

void Serving::advance(WorkerState& state) {
  plugin::GeneratorPlugin& generator = state.need_generator("serve");
  generator.poll(context(state), 256, kSliceMs, [&](const hexad_completion& event) {
    if (!take(event) && event.finish != HEXAD_FINISH_NONE)
      fail(ErrorKind::plugin, "{}: a completion for request {}, which was never submitted", generator.plugin().label(),
           event.id);
  });
  hand_out(state);
}

namespace command {

Message submit(WorkerState& state, const Message& message) {
  plugin::GeneratorPlugin& generator = state.need_generator("submit");
  const data::Batch prompts = message.batch("prompts");
  if (prompts.size() == 0) return {};
  const auto requests = make_requests(message.header.at("sampling"), prompts);
  generator.submit(state.serving.context(state), requests->pointers);
  state.serving.add(prompts, message.header.value("reports", true));
  return {};
}

Message cancel(WorkerState& state, const Message& message) {
  const auto ids = message.header.at("ids").get<std::vector<uint64_t>>();
  state.need_generator("cancel_requests").cancel(state.context(), ids);
  return {};
}

}  // namespace command
}  // namespace hexad::cluster
