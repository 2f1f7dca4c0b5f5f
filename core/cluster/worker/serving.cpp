// Commands on requests that outlive them.
#include "core/cluster/worker/state.hpp"

#include "lib/base/json_integer.hpp"

namespace hexad::cluster::command {

Message submit(WorkerState& state, const Message& message) {
  const data::Batch prompts = message.batch("prompts");
  if (prompts.size() == 0) return {};
  const bool reports = message.header.value("reports", true);
  state.serving.submit(state, message.header.at("sampling"), prompts,
                       reports ? Serving::For::run : Serving::For::nobody);
  return {};
}

Message cancel(WorkerState& state, const Message& message) {
  const auto ids = integers<uint64_t>(message.header.at("ids"));
  state.need_generator("cancel_requests").cancel(state.context(), ids);
  return {};
}

}  // namespace hexad::cluster::command
