// Commands on the generator. `generate` submits every request, polls until all have ended, reports progress on the way;
// with `reports` false, of a worker whose replica has another that does, it keeps all that to itself.
#include <chrono>

#include "lib/base/error.hpp"
#include "core/cluster/worker/completion_columns.hpp"
#include "core/cluster/generation_requests.hpp"
#include "core/cluster/worker/state.hpp"

namespace hexad::cluster {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kGenerationPollMs = 200;
constexpr auto kProgressEvery = std::chrono::milliseconds(500);

}  // namespace

namespace command {

Message generate(WorkerState& state, const Message& message) {
  const data::Batch prompts = message.batch("prompts");
  const bool reports = message.header.value("reports", true);
  const std::string label = state.need_generator("generate").plugin().label();
  state.serving.forget();
  state.serving.submit(state, message.header.at("sampling"), prompts, Serving::For::command);

  std::vector<Completion> completions(prompts.size());
  std::vector<data::Batch> columns(prompts.size());
  int64_t done = 0, tokens = 0;
  auto last_progress = Clock::now();
  while (done < prompts.size()) {
    for (Serving::Finished& request : state.serving.wait(state, kGenerationPollMs)) {
      if (!request.error.empty()) fail(ErrorKind::plugin, "{}: request {}: {}", label, request.id, request.error);
      tokens += static_cast<int64_t>(request.completion.tokens.size());
      completions[request.id] = std::move(request.completion);
      columns[request.id] = std::move(request.columns);
      ++done;
    }
    state.serving.hand_out(state);
    if (Clock::now() - last_progress < kProgressEvery) continue;
    last_progress = Clock::now();
    if (!reports) continue;
    state.link.event("progress",
                     {{"what", "generation"}, {"done", done}, {"total", prompts.size()}, {"tokens", tokens}});
  }
  Message answer;
  if (!reports) return answer;
  answer.put("completions", to_batch(completions));
  answer.put("columns", join_columns(label, columns));
  answer.header["metrics"] = state.metrics.to_json();
  return answer;
}

Message sleep(WorkerState& state, const Message& message) {
  state.need_generator("sleep").sleep(state.context(), message.header.at("level"));
  return {};
}

Message wake(WorkerState& state, const Message&) {
  state.need_generator("wake").wake(state.context());
  return {};
}

}  // namespace command
}  // namespace hexad::cluster
