// Commands on the generator. `generate` submits every request, polls until all have ended, reports progress on the way;
// requests of `submit` outlive it.
#include <chrono>

#include "core/cluster/generation_requests.hpp"
#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kGenerationPollMs = 200;
// A generator ends its poll when the call is cancelled, on all ranks of a replica at once. One that does not may be
// left after this time.
constexpr auto kCancelIsIgnored = std::chrono::seconds(2);

// Those of the requests that have been submitted.
protocol::Generate::Reply collect(WorkerState& state, const protocol::Generate& generate) {
  const data::Batch& prompts = generate.prompts;
  const std::string label = state.need_generator("generate").plugin().label();
  std::vector<Completion> completions(prompts.size());
  std::vector<data::Batch> columns(prompts.size());
  int64_t done = 0, tokens = 0;
  auto not_cancelled = Clock::now();
  while (done < prompts.size()) {
    if (!state.link.cancelled()) not_cancelled = Clock::now();
    if (Clock::now() - not_cancelled > kCancelIsIgnored) fail(ErrorKind::worker, "generate: cancelled");
    for (Serving::Finished& request : state.serving.wait(state, kGenerationPollMs)) {
      if (!request.error.empty()) fail(ErrorKind::plugin, "{}: request {}: {}", label, request.id, request.error);
      tokens += static_cast<int64_t>(request.completion.tokens.size());
      completions[request.id] = std::move(request.completion);
      columns[request.id] = std::move(request.columns);
      ++done;
    }
    state.serving.hand_out(state);
    if (generate.reports) state.tell({.what = "generation", .done = done, .total = prompts.size(), .tokens = tokens});
  }
  if (!generate.reports) return {};
  return {.completions = to_batch(completions), .columns = join_columns(label, columns), .metrics = state.metrics};
}

}  // namespace

namespace command {

protocol::Generate::Reply generate(WorkerState& state, const protocol::Generate& generate) {
  state.serving.forget();
  state.serving.submit(state, generate, Serving::For::command);
  try {
    return collect(state, generate);
  } catch (...) {
    state.serving.give_up(state);
    throw;
  }
}

protocol::Nothing submit(WorkerState& state, const protocol::Submit& submit) {
  if (submit.prompts.size() > 0)
    state.serving.submit(state, submit, submit.reports ? Serving::For::run : Serving::For::nobody);
  return {};
}

protocol::Nothing cancel(WorkerState& state, const protocol::CancelRequests& cancel) {
  state.need_generator("cancel_requests").cancel(state.context(), cancel.ids);
  return {};
}

protocol::Nothing sleep(WorkerState& state, const protocol::Sleep& sleep) {
  state.need_generator("sleep").sleep(state.context(), sleep.level);
  return {};
}

protocol::Nothing wake(WorkerState& state, const protocol::Wake&) {
  state.need_generator("wake").wake(state.context());
  return {};
}

}  // namespace command
}  // namespace hexad::cluster
