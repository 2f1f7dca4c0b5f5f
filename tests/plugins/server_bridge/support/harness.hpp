// A bridge in this process, and servers to attach it to.
#pragma once
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/plugin/plugin_config.hpp"
#include "tests/plugins/server_bridge/support/bucket.hpp"
#include "tests/plugins/server_bridge/support/logging_host.hpp"
#include "tests/plugins/server_bridge/support/wish.hpp"

namespace bridge_test {

using Json = nlohmann::ordered_json;

// A directory with a config.json (and with weights if asked), gone with the object.
class ModelDir {
 public:
  explicit ModelDir(bool weights = true) {
    std::string pattern = (std::filesystem::temp_directory_path() / "hexad-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp");
    path_ = pattern;
    std::ofstream(path_ / "config.json") << R"({"model_type": "llama", "eos_token_id": 2, "vocab_size": 97})";
    std::ofstream(path_ / "tokenizer.json") << "{}";
    if (weights) std::ofstream(path_ / "model.safetensors") << "0";
  }
  ~ModelDir() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// `Fake`: a server of its engine, which has url() and kSection.
template <typename Generator, typename Fake>
class BridgeHarness {
 public:
  // Attached to these servers; `cfg` goes into the section.
  BridgeHarness(const std::vector<const Fake*>& servers, Json cfg = Json::object(), Json section = Json::object()) {
    cfg["server_urls"] = Json::array();
    for (const Fake* server : servers) cfg["server_urls"].push_back(server->url());
    open(std::move(cfg), std::move(section));
  }
  // As if this rank had a GPU: its memory is the host's (support/fake_cuda.c).
  struct OnGpu {};
  BridgeHarness(OnGpu, const std::vector<const Fake*>& servers, Json section = Json::object(),
                Json cfg = Json::object()) {
    host_.context.device = {kDLCUDA, 0};
    cfg["server_urls"] = Json::array();
    for (const Fake* server : servers) cfg["server_urls"].push_back(server->url());
    open(std::move(cfg), std::move(section));
  }
  // With servers of its own, started by `command`.
  struct Spawn {
    std::vector<std::string> command;
  };
  explicit BridgeHarness(const Spawn& spawn, Json cfg = Json::object(), Json section = Json::object()) {
    cfg["server_command"] = spawn.command;
    open(std::move(cfg), std::move(section));
  }

  Generator& operator*() { return *generator_; }
  Generator* operator->() { return generator_.get(); }
  hexad::sdk::Call service() { return host_.service(); }
  hexad::plugin::CallContext& context() { return host_.context; }
  ModelDir& model() { return model_; }
  void close() { generator_.reset(); }

  void submit(const std::vector<Wish>& wishes) {
    const Requests requests(wishes);
    generator_->submit(service(), requests.pointers());
    running_ += wishes.size();
  }

  int64_t poll(int64_t timeout_ms) {
    std::vector<const hexad_completion*> events(64);
    const int64_t count = generator_->poll(service(), events, timeout_ms);
    for (int64_t i = 0; i < count; ++i) take(*events[static_cast<size_t>(i)]);
    generator_->release({events.data(), static_cast<size_t>(count)});
    return count;
  }

  // Polls until every request has ended, at most so long.
  std::map<uint64_t, Sample>& finish(double seconds = 30) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (running_ > 0 && std::chrono::steady_clock::now() < end) poll(100);
    CHECK_MESSAGE(running_ == 0, running_, " requests have not ended:\n", LogLines::all().text());
    return samples;
  }
  std::map<uint64_t, Sample>& run(const std::vector<Wish>& wishes, double seconds = 30) {
    submit(wishes);
    return finish(seconds);
  }

  // One weight of so many equal numbers.
  void update(int64_t version, float value, bool commit = true, const std::string& name = "model.w") {
    generator_->update_begin(service(), version);
    bucket(name, value);
    generator_->update_end(service(), commit);
  }
  void bucket(const std::string& name, float value) {
    generator_->update_bucket(service(), Bucket(name, value, host_.context.device).list());
  }

  std::map<uint64_t, Sample> samples;
  std::vector<std::pair<uint64_t, Sample>> partial;

 private:
  void open(Json cfg, Json section) {
    LogLines::all().clear();
    if (!section.contains("model_name")) section["model_name"] = model_.path().string();
    section["max_total_sequence_length"] = section.value("max_total_sequence_length", 4096);
    for (const char* key : {"lost_timeout_s", "startup_timeout_s", "stall_timeout_s"}) {
      if (!cfg.contains(key)) cfg[key] = 20;
    }
    section[Fake::kSection] = std::move(cfg);
    config_ = std::make_unique<hexad::plugin::PluginConfig>("policy.generation", section);
    generator_ = std::make_unique<Generator>(service(), hexad::sdk::Config(service(), config_->handle()));
  }

  void take(const hexad_completion& event) {
    Sample sample;
    sample.finish = event.finish;
    sample.tokens.assign(event.tokens, event.tokens + event.count);
    sample.logprobs.assign(event.logprobs, event.logprobs + event.count);
    for (int64_t i = 0; i < event.num_spans; ++i)
      sample.spans.emplace_back(event.spans[i].start, event.spans[i].version);
    if (event.error) sample.error = event.error;
    if (event.finish == HEXAD_FINISH_NONE) {
      partial.emplace_back(event.id, sample);
      return;
    }
    if (event.struct_size >= HEXAD_STRUCT_SIZE(hexad_completion, num_columns) && event.num_columns > 0) {
      REQUIRE(event.columns[0].name == std::string("routed_experts"));
      const DLTensor& routes = *event.columns[0].tensor;
      sample.route_shape.assign(routes.shape, routes.shape + routes.ndim);
      const auto* const data = static_cast<const int16_t*>(routes.data);
      sample.routes.assign(data, data + routes.shape[0] * routes.shape[1] * routes.shape[2]);
    }
    sample.finals = samples[event.id].finals + 1;
    samples[event.id] = sample;
    --running_;
  }

  ModelDir model_;
  HostCall host_;
  std::unique_ptr<hexad::plugin::PluginConfig> config_;
  std::unique_ptr<Generator> generator_;
  size_t running_ = 0;
};

// What a bridge logs once it sends requests to the server.
template <typename Fake>
std::string takes_requests(const Fake& server) {
  return server.url() + ") takes requests";
}

// Waits until it holds, at most 10 s; whether it does.
template <typename Predicate>
bool soon(const Predicate& predicate, int tries = 1000) {
  for (int i = 0; i < tries; ++i) {
    if (predicate()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace bridge_test
