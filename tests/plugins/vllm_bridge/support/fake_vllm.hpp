// A server that speaks vLLM's HTTP and can be told to fail. Its model: fake_model.hpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/plugins/server_bridge/support/fake_model.hpp"
#include "tests/plugins/vllm_bridge/support/weight_transfer.hpp"
#include "tests/support/fake_http.hpp"

namespace vllm_test {

using namespace bridge_test;
using namespace fake_http;

// What becomes of one generation request, after so many tokens of it.
struct Fault {
  enum Kind {
    none,
    reset,            // RST
    truncated,        // the connection closes inside an event
    status,           // no stream but `code`
    bad_json,         // an event that is none
    bad_count,        // a log-prob too few
    too_many,         // more tokens than were asked for
    positive,         // a log-prob above 0
    error_event,      // {"error": ...} in the stream
    no_done,          // the stream ends without [DONE]
    no_finish_chunk,  // the last event with tokens is not sent
    let_go,           // [DONE] without a reason, as an abort on the server's side
    short_length,     // finish_reason length before max_tokens
    hang,             // nothing any more
    drip,             // `text` again and again, in a stream
    drip_status,      // the same as the body of an answer with `code`
    late,             // silence for `ms`, then `text` in two pieces, and it goes on
  } kind = none;
  int after = 0;
  int code = 500, ms = 0;
  const char* text = ": ping\n\n";
};

class FakeVllm {
 public:
  static constexpr const char* kSection = "vllm_cfg";
  struct Options {
    bool tokens_api = true, dev_mode = true;
    Json reset_success = true;
    std::string version = "0.24.0", api_key = {}, logprobs_mode = "processed_logprobs", weight_transfer = {};
    std::string quantization = {};  // "": it does not say
    std::string device = "cuda";
    Json speculation = nullptr;
    int port = 0, token_ms = 0;
  };
  using Inject = std::function<Fault(const Json& body)>;

  FakeVllm() : FakeVllm(Options{}) {}
  explicit FakeVllm(Options options)
      : options_(std::move(options)),
        listener_(options_.port,
                  [this](const Connection& connection, const HttpMessage& message) { handle(connection, message); }) {}
  ~FakeVllm() { stop(); }

  int port() const { return listener_.port(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

  // As if it were killed: every connection is reset.
  void stop() {
    listener_.reset_all();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    listener_.stop();
  }

  void inject(Inject inject) {
    const std::lock_guard lock(mutex_);
    inject_ = std::move(inject);
  }
  void set_healthy(bool healthy) { healthy_ = healthy; }
  // The path (a prefix) that is answered with a status, and how often.
  void refuse(const std::string& path, int status, int times = 1'000'000) {
    const std::lock_guard lock(mutex_);
    refused_ = path, refused_status_ = status, refused_times_ = times;
  }
  // Requests for a path (a prefix) wait for an answer until open_gate.
  void gate(const std::string& path) {
    const std::lock_guard lock(mutex_);
    gate_ = path;
  }
  void open_gate() {
    const std::lock_guard lock(mutex_);
    gate_.clear();
    changed_.notify_all();
  }
  std::vector<Json> generations() const {
    const std::lock_guard lock(mutex_);
    return generations_;
  }
  // Method and path of everything else, in order.
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int64_t count(const std::string& call) const {
    const std::lock_guard lock(mutex_);
    return std::count_if(calls_.begin(), calls_.end(), [&](const std::string& c) { return c.starts_with(call); });
  }
  // Whether these calls (their beginnings) came, each for the first time after the one before it.
  bool came_in_order(const std::vector<std::string>& wanted) const {
    const std::lock_guard lock(mutex_);
    auto last = calls_.begin();
    for (const std::string& call : wanted) {
      const auto first = std::ranges::find_if(calls_, [&](const std::string& c) { return c.starts_with(call); });
      if (first == calls_.end() || first < last) return false;
      last = first;
    }
    return true;
  }
  int64_t running() const { return running_; }
  int64_t most_running() const { return most_running_; }
  bool paused() const { return paused_; }
  uint64_t weights() const { return weights_; }
  std::string seen_key() const {
    const std::lock_guard lock(mutex_);
    return seen_key_;
  }

 private:
  void handle(const Connection& connection, const HttpMessage& message) {
    const auto& [method, path, key, body] = message;
    bool refused = false;
    {
      std::unique_lock lock(mutex_);
      calls_.push_back(method + " " + path + (method == "POST" && path == "/collective_rpc" ? " " + body : ""));
      seen_key_ = key;
      refused = !refused_.empty() && path.starts_with(refused_) && refused_times_-- > 0;
      changed_.wait(lock, [&] { return stopping_ || gate_.empty() || !path.starts_with(gate_); });
    }
    const auto error = [&](int status, const std::string& text) {
      connection.reply(status, Json{{"error", {{"message", text}, {"code", status}}}}.dump());
    };
    if (refused) return error(refused_status_, "told to refuse");
    if (path == "/health") return healthy_ ? connection.reply(200, "") : error(503, "engine dead");
    if (path == "/version") return connection.reply(200, Json{{"version", options_.version}}.dump());
    const bool generates = (options_.tokens_api && path == "/inference/v1/generate") || path == "/v1/completions";
    if (generates && !options_.api_key.empty() && key != options_.api_key) return error(401, "Unauthorized");
    if (generates) return generate(connection, path == "/inference/v1/generate", Json::parse(body));
    if (!options_.dev_mode) return error(404, "Not Found");
    if (path == "/is_paused") return connection.reply(200, Json{{"is_paused", paused_.load()}}.dump());
    if (path.starts_with("/server_info")) {
      Json config = {{"model_config", {{"logprobs_mode", options_.logprobs_mode}}},
                     {"device_config", {{"device", options_.device}}},
                     {"speculative_config", options_.speculation},
                     {"weight_transfer_config", nullptr}};
      if (!options_.quantization.empty())
        config["model_config"]["quantization"] = options_.quantization == "none" ? Json() : Json(options_.quantization);
      if (!options_.weight_transfer.empty()) config["weight_transfer_config"] = {{"backend", options_.weight_transfer}};
      return connection.reply(200, Json{{"vllm_config", config}}.dump());
    }
    if (path.starts_with("/pause")) return set_paused(true), connection.reply(200, R"({"status":"paused"})");
    if (path.starts_with("/resume")) return set_paused(false), connection.reply(200, R"({"status":"resumed"})");
    if (path == "/reset_prefix_cache") return connection.reply(200, Json{{"success", options_.reset_success}}.dump());
    if (path == "/collective_rpc") {
      weights_ = weights_in(Json::parse(body).at("kwargs").at("weights_path").get<std::string>());
      return connection.reply(200, R"({"results":[null]})");
    }
    const std::optional<std::string> wrong =
        options_.weight_transfer.empty() ? std::nullopt : transfer_.take(path, Json::parse(body), weights_);
    if (!wrong) return error(404, "Not Found");
    wrong->empty() ? connection.reply(200, R"({"message":"done"})") : error(500, *wrong);
  }

  void set_paused(bool paused) {
    const std::lock_guard lock(mutex_);
    paused_ = paused;
    changed_.notify_all();
  }

  // Waits for a pause to end, and for the time of a token. Throws if the client has gone.
  void pass_time(const Connection& connection) {
    std::unique_lock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.token_ms);
    while (paused_ || std::chrono::steady_clock::now() < end) {
      if (stopping_) throw Gone{};
      lock.unlock();
      connection.pass_time(paused_ ? 5 : std::min(options_.token_ms, 5));
      lock.lock();
    }
  }

  void generate(const Connection& connection, bool tokens_api, const Json& body) {
    const Json& sampling = tokens_api ? body.value("sampling_params", Json::object()) : body;
    const char* prompt_key = tokens_api ? "token_ids" : "prompt";
    if (!body.contains(prompt_key)) return connection.reply(400, R"({"error":{"message":"no prompt"}})");
    Fault fault;
    {
      const std::lock_guard lock(mutex_);
      generations_.push_back(body);
      if (inject_) fault = inject_(body);
    }
    if (fault.kind == Fault::status)
      return connection.reply(fault.code, R"({"error":{"message":"injected","code":500}})");
    if (fault.kind == Fault::drip_status) {
      connection.begin_stream(fault.code);
      drip(connection, fault.text);
    }
    const struct Count {
      FakeVllm& self;
      explicit Count(FakeVllm& owner) : self(owner) {
        const int64_t now = ++self.running_;
        int64_t most = self.most_running_;
        while (now > most && !self.most_running_.compare_exchange_weak(most, now)) {
        }
      }
      ~Count() { --self.running_; }
    } count(*this);
    connection.begin_stream();
    stream(connection, tokens_api, body.at(prompt_key).get<std::vector<int32_t>>(), sampling, fault);
    if (fault.kind == Fault::no_done) return connection.chunk("");
    connection.chunk("data: [DONE]\n\n");
    connection.chunk("");
  }

  void stream(const Connection& connection, bool tokens_api, std::vector<int32_t> tokens, const Json& sampling,
              const Fault& fault) {
    const auto most = sampling.at("max_tokens").get<int64_t>();
    const auto stops = sampling.at("stop_token_ids").get<std::set<int32_t>>();
    const auto event = [&](const std::vector<int32_t>& ids, const std::vector<float>& logprobs, const Json& finish) {
      Json choice = {{"index", 0}, {"token_ids", ids}, {"finish_reason", finish}};
      if (tokens_api) {
        Json content = Json::array();
        for (const float logprob : logprobs) content.push_back({{"token", "token_id:0"}, {"logprob", logprob}});
        choice["logprobs"] = {{"content", content}};
      } else {
        choice["logprobs"] = {{"token_logprobs", logprobs}};
      }
      return "data: " + Json{{"request_id", "x"}, {"choices", {choice}}}.dump() + "\n\n";
    };
    for (int64_t i = 0; i < most; ++i) {
      if (fault.kind != Fault::none && i == fault.after && !break_off(connection, fault, event, most)) return;
      pass_time(connection);
      const uint64_t weights = weights_;
      const int32_t token = next_token(tokens, weights);
      const float logprob = next_logprob(tokens, weights);
      tokens.push_back(token);
      const bool stop = stops.contains(token), last = stop || i + 1 == most;
      if (last && fault.kind == Fault::no_finish_chunk) {
        connection.chunk(event({token}, {logprob}, nullptr));
        throw Gone{};
      }
      connection.chunk(event({token}, {logprob}, stop ? Json("stop") : last ? Json("length") : Json()));
      const bool goes_on = fault.kind == Fault::hang || fault.kind == Fault::drip;
      if (last && goes_on && i + 1 == fault.after) break_off(connection, fault, event, most);
      if (last) return;
    }
  }

  [[noreturn]] void drip(const Connection& connection, const std::string& text) {
    for (; !stopping_; connection.pass_time(5)) connection.chunk(text);
    throw Gone{};
  }

  // False: the stream ends here, as it should for the client.
  template <typename Event>
  bool break_off(const Connection& connection, const Fault& fault, const Event& event, int64_t most) {
    switch (fault.kind) {
      case Fault::reset: connection.reset_at_close(); throw Gone{};
      case Fault::truncated: connection.send_all("400\r\ndata: {\"choices\": [{\"ind"); throw Gone{};
      case Fault::bad_json: connection.chunk("data: {\"choices\": [}\n\n"); break;
      case Fault::bad_count: connection.chunk(event({7, 8}, {-1.0f}, nullptr)); break;
      case Fault::too_many:
        connection.chunk(event(std::vector<int32_t>(static_cast<size_t>(most) + 1, 7),
                               std::vector<float>(static_cast<size_t>(most) + 1, -1), nullptr));
        break;
      case Fault::positive: connection.chunk(event({7}, {0.5f}, nullptr)); break;
      case Fault::error_event: connection.chunk("data: {\"error\": {\"message\": \"engine broke\"}}\n\n"); break;
      case Fault::short_length: connection.chunk(event({7}, {-1.0f}, "length")); break;
      case Fault::hang:
        while (!stopping_) connection.pass_time(10);
        throw Gone{};
      case Fault::drip: drip(connection, fault.text);
      case Fault::late:
        connection.pass_time(fault.ms);
        connection.chunk(std::string(1, *fault.text));
        connection.pass_time(50);
        return connection.chunk(fault.text + 1), true;
      default: return fault.kind == Fault::no_finish_chunk;
    }
    return false;
  }

  Options options_;
  std::atomic<bool> stopping_{false}, healthy_{true}, paused_{false};
  std::atomic<uint64_t> weights_{0};
  std::atomic<int64_t> running_{0}, most_running_{0};
  WeightTransfer transfer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Inject inject_;
  std::string refused_, gate_;
  int refused_status_ = 500, refused_times_ = 0;
  std::vector<Json> generations_;
  std::vector<std::string> calls_;
  std::string seen_key_;
  HttpListener listener_;  // last: its threads use the rest
};

}  // namespace vllm_test
