// Commands on the generator. `generate` submits every request, polls until all have ended, reports progress on the way;
// with `reports` false, of a worker whose replica has another that does, it keeps all that to itself.
#include <chrono>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/cluster/completion_columns.hpp"
#include "core/cluster/worker_state.hpp"

namespace hexad::cluster {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kGenerationPollMs = 200;
constexpr auto kProgressEvery = std::chrono::milliseconds(500);

// The requests of one command and what they point to.
struct Requests {
  std::vector<hexad_request> requests;
  std::vector<const hexad_request*> pointers;
  std::vector<int32_t> stop_token_ids;
  std::vector<std::string> stop_strings;
  std::vector<const char*> stop_pointers;
};

std::unique_ptr<Requests> make_requests(const Json& sampling, const data::Batch& prompts) {
  auto result = std::make_unique<Requests>();
  result->stop_token_ids = sampling.at("stop_token_ids").get<std::vector<int32_t>>();
  result->stop_strings = sampling.at("stop_strings").get<std::vector<std::string>>();
  for (const std::string& text : result->stop_strings) result->stop_pointers.push_back(text.c_str());
  for (int64_t i = 0; i < prompts.size(); ++i) {
    const auto tokens = prompts.row<int32_t>("tokens", i);
    hexad_request request{};
    request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
    request.flags = (sampling.value("ignore_eos", false) ? HEXAD_REQUEST_IGNORE_EOS : 0) |
                    (sampling.value("greedy", false) ? HEXAD_REQUEST_GREEDY : 0);
    request.id = static_cast<uint64_t>(i);
    request.group = static_cast<uint64_t>(prompts.row<int64_t>("group", i)[0]);
    request.prompt = tokens.data();
    request.prompt_size = static_cast<int64_t>(tokens.size());
    request.max_new_tokens = prompts.row<int64_t>("max_new_tokens", i)[0];
    request.seed = static_cast<uint64_t>(prompts.row<int64_t>("seed", i)[0]);
    request.temperature = sampling.at("temperature");
    request.top_p = sampling.at("top_p");
    request.min_p = sampling.value("min_p", 0.0);
    request.top_k = sampling.at("top_k");
    request.stop_token_ids = result->stop_token_ids.data();
    request.num_stop_token_ids = static_cast<int64_t>(result->stop_token_ids.size());
    request.stop_strings = result->stop_pointers.data();
    request.num_stop_strings = static_cast<int64_t>(result->stop_pointers.size());
    result->requests.push_back(request);
  }
  for (const hexad_request& request : result->requests) result->pointers.push_back(&request);
  return result;
}

struct Completion {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  int32_t finish = HEXAD_FINISH_NONE;
  int64_t version = 0;
};

data::Batch to_batch(const std::vector<Completion>& completions) {
  std::vector<int64_t> lengths, versions;
  std::vector<int32_t> tokens, finish;
  std::vector<float> logprobs;
  for (const Completion& completion : completions) {
    lengths.push_back(static_cast<int64_t>(completion.tokens.size()));
    versions.push_back(completion.version);
    finish.push_back(completion.finish);
    tokens.insert(tokens.end(), completion.tokens.begin(), completion.tokens.end());
    logprobs.insert(logprobs.end(), completion.logprobs.begin(), completion.logprobs.end());
  }
  data::Batch batch = data::Batch::of_lengths(lengths);
  batch.set("tokens", data::Tensor::of(tokens), data::Axis::token);
  batch.set("logprobs", data::Tensor::of(logprobs), data::Axis::token);
  batch.set("finish", data::Tensor::of(finish), data::Axis::sample);
  batch.set("weight_version", data::Tensor::of(versions), data::Axis::sample);
  return batch;
}

}  // namespace

namespace command {

Message generate(WorkerState& state, const Message& message) {
  plugin::GeneratorPlugin& generator = state.need_generator("generate");
  const data::Batch prompts = message.batch("prompts");
  const bool reports = message.header.value("reports", true);
  const auto requests = make_requests(message.header.at("sampling"), prompts);
  const plugin::CallContext context = state.context();
  generator.submit(context, requests->pointers);

  std::vector<Completion> completions(prompts.size());
  std::vector<data::Batch> columns(prompts.size());
  int64_t done = 0, tokens = 0;
  auto last_progress = Clock::now();
  const auto take = [&](const hexad_completion& event) {
    if (event.finish == HEXAD_FINISH_NONE) return;
    if (event.id >= completions.size()) {
      fail(ErrorKind::plugin, "{}: a completion for request {}, which was never submitted", generator.plugin().label(),
           event.id);
    }
    if (event.finish == HEXAD_FINISH_ERROR) {
      fail(ErrorKind::plugin, "{}: request {}: {}", generator.plugin().label(), event.id,
           event.error ? event.error : "failed without a reason");
    }
    completions[event.id] = {{event.tokens, event.tokens + event.count},
                             {event.logprobs, event.logprobs + event.count},
                             event.finish,
                             event.num_spans > 0 ? event.spans[0].version : 0};
    columns[event.id] = columns_of(generator.plugin().label(), event, prompts.length(static_cast<int64_t>(event.id)));
    ++done;
    tokens += event.count;
  };
  while (done < prompts.size()) {
    generator.poll(context, 256, kGenerationPollMs, take);
    if (Clock::now() - last_progress < kProgressEvery) continue;
    last_progress = Clock::now();
    if (!reports) continue;
    state.link.event("progress",
                     {{"what", "generation"}, {"done", done}, {"total", prompts.size()}, {"tokens", tokens}});
  }
  Message answer;
  if (!reports) return answer;
  answer.put("completions", to_batch(completions));
  answer.put("columns", join_columns(generator.plugin().label(), columns));
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
