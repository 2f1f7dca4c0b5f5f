// The bridge in this process, behind the engine's own host table with a log that tests can read.
#pragma once
#include <doctest/doctest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/plugin_config.hpp"
#include "plugins/vllm_bridge/generator.hpp"
#include "tests/plugins/vllm_bridge/support/fake_vllm.hpp"

namespace vllm_test {

// What the plugin has logged, of all generators of this program.
class LogLines {
 public:
  static LogLines& all() {
    static LogLines lines;
    return lines;
  }
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    lines_.clear();
  }
  bool has(const std::string& part) const {
    const std::lock_guard lock(mutex_);
    for (const std::string& line : lines_) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

inline const hexad_host* logging_host() {
  static const hexad_host host = [] {
    hexad_host copy = *hexad::plugin::host_table(nullptr);
    copy.log_enabled = [](int32_t) -> int32_t { return 1; };
    copy.log = [](hexad_call*, int32_t, const char* text, uint64_t size) {
      LogLines::all().add(std::string(text, size));
    };
    return copy;
  }();
  return &host;
}

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

struct Sample {
  int32_t finish = HEXAD_FINISH_NONE;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::pair<int64_t, int64_t>> spans;  // start, version
  std::string error;
  int finals = 0;
};

struct Wish {
  uint64_t id = 0;
  std::vector<int32_t> prompt = {1, 2, 3};
  int64_t max_new_tokens = 12;
  uint64_t group = 0, seed = 1;
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  std::vector<int32_t> stop_token_ids = {};
  std::vector<std::string> stop_strings = {};
  uint32_t flags = 0;
};

// What the fake model says to a wish, undisturbed.
inline std::pair<std::vector<int32_t>, std::vector<float>> undisturbed(const Wish& wish, uint64_t weights = 0) {
  std::vector<int32_t> tokens = wish.prompt, made;
  std::vector<float> logprobs;
  while (static_cast<int64_t>(made.size()) < wish.max_new_tokens) {
    made.push_back(next_token(tokens, weights));
    logprobs.push_back(next_logprob(tokens, weights));
    tokens.push_back(made.back());
    const auto& stops = wish.stop_token_ids;
    if (std::find(stops.begin(), stops.end(), made.back()) != stops.end()) break;
  }
  return {made, logprobs};
}

class Harness {
 public:
  // Attached to these servers; `cfg` goes into vllm_cfg.
  Harness(const std::vector<const FakeVllm*>& servers, Json cfg = Json::object(), Json section = Json::object()) {
    cfg["server_urls"] = Json::array();
    for (const FakeVllm* server : servers) cfg["server_urls"].push_back(server->url());
    open(std::move(cfg), std::move(section));
  }
  // As if this rank had a GPU: its memory is the host's (support/fake_cuda.c).
  struct OnGpu {};
  Harness(OnGpu, const std::vector<const FakeVllm*>& servers, Json section = Json::object(),
          Json cfg = Json::object()) {
    context_.device = {kDLCUDA, 0};
    cfg["server_urls"] = Json::array();
    for (const FakeVllm* server : servers) cfg["server_urls"].push_back(server->url());
    open(std::move(cfg), std::move(section));
  }
  // With servers of its own, started by `command`.
  struct Spawn {
    std::vector<std::string> command;
  };
  explicit Harness(const Spawn& spawn, Json cfg = Json::object(), Json section = Json::object()) {
    cfg["server_command"] = spawn.command;
    open(std::move(cfg), std::move(section));
  }

  hexad::vllm::Generator& operator*() { return *generator_; }
  hexad::vllm::Generator* operator->() { return generator_.get(); }
  hexad::sdk::Call service() { return {logging_host(), call_.handle()}; }
  hexad::plugin::CallContext& context() { return context_; }
  ModelDir& model() { return model_; }
  void close() { generator_.reset(); }

  void submit(const std::vector<Wish>& wishes) {
    std::deque<hexad_request> requests;
    std::deque<std::vector<const char*>> strings;
    std::vector<const hexad_request*> pointers;
    for (const Wish& wish : wishes) {
      std::vector<const char*>& stops = strings.emplace_back();
      for (const std::string& text : wish.stop_strings) stops.push_back(text.c_str());
      requests.push_back({.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings),
                          .flags = wish.flags,
                          .id = wish.id,
                          .group = wish.group,
                          .prompt = wish.prompt.data(),
                          .prompt_size = static_cast<int64_t>(wish.prompt.size()),
                          .max_new_tokens = wish.max_new_tokens,
                          .seed = wish.seed,
                          .temperature = wish.temperature,
                          .top_p = wish.top_p,
                          .min_p = wish.min_p,
                          .top_k = wish.top_k,
                          .stop_token_ids = wish.stop_token_ids.data(),
                          .num_stop_token_ids = static_cast<int64_t>(wish.stop_token_ids.size()),
                          .stop_strings = stops.data(),
                          .num_stop_strings = static_cast<int64_t>(stops.size())});
      pointers.push_back(&requests.back());
    }
    generator_->submit(service(), pointers);
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
    std::vector<float> data(6, value);
    int64_t shape[] = {2, 3}, offsets[] = {0, 0};
    DLTensor tensor{data.data(), context_.device, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
    const hexad_weight_slice slice{name.c_str(), &tensor, shape, offsets, shape, 2, tensor.dtype};
    const hexad_weight_list list{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1};
    generator_->update_bucket(service(), list);
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
    section["vllm_cfg"] = std::move(cfg);
    context_.detokenize = [](std::span<const int32_t> ids) {
      std::string text;
      for (const int32_t id : ids) text += static_cast<char>('a' + id % 26);
      return text;
    };
    config_ = std::make_unique<hexad::plugin::PluginConfig>("policy.generation", section);
    generator_ = std::make_unique<hexad::vllm::Generator>(service(), hexad::sdk::Config(service(), config_->handle()));
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
    sample.finals = samples[event.id].finals + 1;
    samples[event.id] = sample;
    --running_;
  }

  ModelDir model_;
  hexad::plugin::CallContext context_;
  hexad::plugin::Call call_{context_, "test"};
  std::unique_ptr<hexad::plugin::PluginConfig> config_;
  std::unique_ptr<hexad::vllm::Generator> generator_;
  size_t running_ = 0;
};

// The sample is the one that nothing has disturbed, and came once.
inline void check_sample(const Wish& wish, const Sample& sample, int32_t finish = HEXAD_FINISH_LENGTH,
                         uint64_t weights = 0) {
  const auto [tokens, logprobs] = undisturbed(wish, weights);
  CAPTURE(wish.id);
  CHECK(sample.finals == 1);
  CHECK_MESSAGE(sample.finish == finish, "finish ", sample.finish, " ", sample.error);
  CHECK(sample.tokens == tokens);
  CHECK(sample.logprobs == logprobs);
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

// So many wishes in groups of four, every one with a prompt of its own group.
inline std::vector<Wish> many(int count, int64_t max_new_tokens = 12) {
  std::vector<Wish> wishes;
  for (int i = 0; i < count; ++i) {
    Wish wish;
    wish.id = static_cast<uint64_t>(i), wish.group = static_cast<uint64_t>(i / 4);
    wish.prompt = {1, 2, static_cast<int32_t>(3 + i / 4 % 90), static_cast<int32_t>(i % 97)};
    wish.max_new_tokens = max_new_tokens;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

}  // namespace vllm_test
