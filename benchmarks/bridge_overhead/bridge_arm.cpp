#include "benchmarks/bridge_overhead/bridge_arm.hpp"

#include <cstdlib>
#include <fstream>
#include <span>

#include "benchmarks/bridge_overhead/requests.hpp"

namespace hexad::bridge_overhead {
namespace {

constexpr int64_t kEvents = 256, kPollMs = 200;  // as the engine's workers poll
constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

BridgeArm::BridgeArm(const std::filesystem::path& plugins, const std::string& url, int64_t most) {
  std::string pattern = (std::filesystem::temp_directory_path() / "bridge-overhead-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) throw std::runtime_error("no folder can be made for a model's config.json");
  model_dir_ = pattern;
  std::ofstream(model_dir_ / "config.json") << R"({"model_type": "llama", "vocab_size": 128256})";
  plugin::Options options;
  options.paths = {plugins};
  registry_ = std::make_unique<plugin::Registry>(options, nullptr);
  plugin::PluginConfig config("policy.generation",
                              {{"model_name", model_dir_.string()},
                               {"max_total_sequence_length", 1 << 20},
                               {"vllm_cfg", {{"server_urls", {url}}, {"max_running_requests", most}}}});
  generator_ = std::make_unique<plugin::GeneratorPlugin>(registry_->load(plugin::Kind::generator, "vllm_bridge"),
                                                         context_, std::move(config));
}

BridgeArm::~BridgeArm() {
  generator_.reset();
  std::filesystem::remove_all(model_dir_);
}

Outcome BridgeArm::run(const Load& load) {
  const Requests requests(load);
  const std::span<const hexad_request* const> all = requests.pointers();
  Tally tally(load);
  int64_t submitted = 0;
  const auto submit = [&](int64_t count) {
    count = std::min(count, load.count - submitted);
    if (count == 0) return;
    for (int64_t i = 0; i < count; ++i) tally.begin(load.first + static_cast<uint64_t>(submitted + i));
    generator_->submit(context_, all.subspan(static_cast<size_t>(submitted), static_cast<size_t>(count)));
    submitted += count;
  };
  submit(load.concurrency);
  auto heard = Clock::now();
  while (tally.done() < load.count && Clock::now() - heard < kPatience) {
    const int64_t ended = generator_->poll(context_, kEvents, kPollMs, [&](const hexad_completion& event) {
      tally.end(event.id, event.finish != HEXAD_FINISH_LENGTH
                              ? fmt::format("ended as {}: {}", event.finish, event.error ? event.error : "")
                              : difference(event.id, event.tokens, event.logprobs, event.count, load.shape));
    });
    if (ended == 0) continue;
    heard = Clock::now();
    submit(ended);
  }
  return tally.finish();
}

}  // namespace hexad::bridge_overhead
