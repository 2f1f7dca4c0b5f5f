// Rounds of rollouts by the native generator on this CPU, each when it is asked for: a peer beside it has the cores in
// between.
//
//   generator_rounds MODEL_DIR [THREADS]
//
// Built by `ninja generator_rounds`; benchmarks/cpu_table.py runs it. A line of standard input is a round:
// {"prompts": [[id, ...], ...], "new_tokens": N, "temperature": T, "seed": S}, T = 0 for greedy. Every prompt is one
// sequence; all run at once, and none stops before N tokens. Answers with {"seconds", "cpu_seconds", "tokens": [[...]],
// "logprobs": [[...]]} in a line.
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include <nlohmann/json.hpp>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/plugin_config.hpp"
#include "plugins/native/generator.hpp"

namespace {

using namespace hexad;
using Json = nlohmann::json;

std::vector<hexad_request> requests_of(const Json& round, const std::vector<std::vector<int32_t>>& prompts) {
  std::vector<hexad_request> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    hexad_request request{};
    request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
    request.flags = HEXAD_REQUEST_IGNORE_EOS;
    request.id = request.group = i;
    request.seed = round.at("seed").get<uint64_t>() * prompts.size() + i;
    request.prompt = prompts[i].data();
    request.prompt_size = static_cast<int64_t>(prompts[i].size());
    request.max_new_tokens = round.at("new_tokens");
    request.temperature = round.at("temperature");
    request.top_p = 1;
    requests.push_back(request);
  }
  return requests;
}

Json run(native::Generator& generator, const sdk::Call& call, const Json& round) {
  const auto prompts = round.at("prompts").get<std::vector<std::vector<int32_t>>>();
  const std::vector<hexad_request> requests = requests_of(round, prompts);
  std::vector<const hexad_request*> pointers;
  for (const hexad_request& request : requests) pointers.push_back(&request);
  std::vector<std::vector<int32_t>> tokens(prompts.size());
  std::vector<std::vector<float>> logprobs(prompts.size());
  std::vector<const hexad_completion*> events(256);
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t used = std::clock();
  generator.flush_cache(call);
  generator.submit(call, pointers);
  for (size_t ended = 0; ended < prompts.size();) {
    const int64_t count = generator.poll(call, events, 1000);
    for (int64_t i = 0; i < count; ++i) {
      const hexad_completion& event = *events[static_cast<size_t>(i)];
      tokens[event.id].assign(event.tokens, event.tokens + event.count);
      logprobs[event.id].assign(event.logprobs, event.logprobs + event.count);
    }
    generator.release({events.data(), static_cast<size_t>(count)});
    ended += static_cast<size_t>(count);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {{"seconds", seconds.count()},
          {"cpu_seconds", double(std::clock() - used) / CLOCKS_PER_SEC},
          {"tokens", tokens},
          {"logprobs", logprobs}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: generator_rounds MODEL_DIR [THREADS]\n";
    return 2;
  }
  if (argc > 2) at::set_num_threads(std::atoi(argv[2]));
  const plugin::CallContext context;
  plugin::Call record(context, "generator_rounds");
  const sdk::Call call(plugin::host_table(nullptr), record.handle());
  const plugin::PluginConfig config("policy.generation",
                                    {{"model_name", argv[1]}, {"max_total_sequence_length", 1024}});
  native::Generator generator(call, sdk::Config(call, config.handle()));
  for (std::string line; std::getline(std::cin, line);)
    std::cout << run(generator, call, Json::parse(line)).dump() << std::endl;
  return 0;
}
