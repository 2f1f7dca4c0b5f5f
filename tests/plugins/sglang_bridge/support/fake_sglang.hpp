// A server that speaks SGLang's HTTP and can be told to fail. Its model: fake_model.hpp.
#pragma once
#include <sodium.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "plugins/sglang_bridge/stand_in/weight_groups.hpp"
#include "tests/plugins/server_bridge/support/fake_model.hpp"
#include "tests/plugins/sglang_bridge/support/nccl_member.hpp"
#include "tests/plugins/sglang_bridge/support/tensor_pickle.hpp"
#include "tests/support/fake_http.hpp"

namespace sglang_test {

using namespace bridge_test;
using namespace fake_http;
using Json = nlohmann::ordered_json;

// What becomes of one generation request, after so many tokens of it.
struct Fault {
  enum Kind {
    none,
    reset,        // RST
    truncated,    // the connection closes inside an event
    status,       // no stream but `code`, with `text`
    event,        // `text` in place of an event
    other_id,     // a log-prob of another token
    nan,          // a log-prob of null, as SGLang writes NaN
    fewer,        // an event with fewer tokens than before
    changed,      // an event with another first token
    outside,      // a token that the model has not
    too_many,     // more tokens than were asked for
    short_spans,  // weight_versions that end too early
    newer,        // a token of weights that the run has not given
    let_go,       // an end of type abort, with the tokens so far
    no_done,      // the stream ends without [DONE]
    hang,         // nothing any more
    endless       // an event without an end
  } kind = none;
  int after = 0, code = 500;
  std::string text = {};
};

class FakeSglang {
 public:
  static constexpr const char* kSection = "sglang_cfg";
  struct Options {
    std::string version = "0.5.23", api_key = {}, model_type = "llama", device = "cuda";
    int64_t context_length = 4096;
    bool memory_saver = false, generates = true;
    bool routes = false;  // of three layers, two experts a token
    int port = 0, token_ms = 0, tp_size = 1, dp_size = 1;
  };
  using Inject = std::function<Fault(const Json& body)>;

  FakeSglang() : FakeSglang(Options{}) {}
  explicit FakeSglang(Options options)
      : options_(std::move(options)),
        groups_(options_.tp_size, [](const Json& init) { return std::make_unique<NcclMember>(init); }),
        listener_(options_.port,
                  [this](const Connection& connection, const HttpMessage& message) { handle(connection, message); }) {}
  ~FakeSglang() { stop(); }

  int port() const { return listener_.port(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }
  // As if it were killed: every connection is reset.
  void stop() {
    stopping_ = true;
    groups_.close();
    listener_.stop();
  }

  void inject(Inject inject) {
    const std::lock_guard lock(mutex_);
    inject_ = std::move(inject);
  }
  // The path (a prefix) that is answered with a status and a body, how often, and what must be in the request.
  void refuse(const std::string& path, int status, const std::string& body, int times = 1'000'000,
              const std::string& part = "") {
    const std::lock_guard lock(mutex_);
    refused_part_ = part, refused_ = path, refused_status_ = status, refused_body_ = body, refused_times_ = times;
  }
  // The path (a prefix) that is not answered, as long as the server lives; "": none.
  void hang(const std::string& path) {
    const std::lock_guard lock(mutex_);
    hanging_ = path;
  }
  hexad::sglang::stand_in::WeightGroups& groups() { return groups_; }
  std::vector<Json> generations() const {
    const std::lock_guard lock(mutex_);
    return generations_;
  }
  // Method, path and body of everything else, in order.
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int64_t count(const std::string& call) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(calls_, [&](const std::string& c) { return c.starts_with(call); });
  }
  // What was posted since the last pause, itself first.
  std::vector<std::string> since_pause() const {
    std::vector<std::string> posted;
    for (const std::string& call : calls()) {
      if (call.starts_with("POST /pause_generation")) posted.clear();
      if (call.starts_with("POST ")) posted.push_back(call);
    }
    return posted;
  }
  // The expert of eight that a token (of prompt and completion) goes to.
  static int32_t route_of(int64_t token, int64_t layer, int64_t slot) {
    return static_cast<int32_t>((3 * token + 5 * layer + slot) % 8);
  }
  bool paused() const { return paused_; }
  void set_paused(bool paused) { paused_ = paused; }
  int64_t running() const { return running_; }
  uint64_t weights() const { return weights_; }

 private:
  void handle(const Connection& connection, const HttpMessage& message) {
    const auto& [method, path, key, body] = message;
    {
      const std::lock_guard lock(mutex_);
      if (path != "/generate") calls_.push_back(method + " " + path + (body.empty() ? "" : " " + body));
      const bool meant = !refused_.empty() && path.starts_with(refused_) && body.find(refused_part_) != body.npos;
      if (meant && refused_times_-- > 0) return connection.reply(refused_status_, refused_body_);
    }
    while (hangs(path)) connection.pass_time(10);
    if (path == "/health") return connection.reply(paused_ ? 503 : 200, "");
    if (!options_.api_key.empty() && key != options_.api_key)
      return connection.reply(401, R"({"error":"Unauthorized"})");
    if (path == "/generate") return generate(connection, Json::parse(body));
    if (path == "/model_info") {
      return connection.reply(200, Json{{"is_generation", options_.generates},
                                        {"weight_version", version()},
                                        {"model_type", options_.model_type}}
                                       .dump());
    }
    if (path == "/server_info") {
      return connection.reply(200, Json{{"version", options_.version},
                                        {"context_length", options_.context_length},
                                        {"tp_size", options_.tp_size},
                                        {"dp_size", options_.dp_size},
                                        {"device", options_.device},
                                        {"enable_memory_saver", options_.memory_saver},
                                        {"enable_return_routed_experts", options_.routes}}
                                       .dump());
    }
    if (path == "/update_weights_from_tensor") {
      const auto reply = groups_.take(body, [&](const Json& info) { return read_tensors(info, options_.tp_size); });
      if (reply.version) weights_ = groups_.hash(), set_version(*reply.version);
      return connection.reply(reply.status, reply.body);
    }
    if (const auto reply = groups_.answer(path, body)) {
      if (reply->version) weights_ = groups_.hash(), set_version(*reply->version);
      return connection.reply(reply->status, reply->body);
    }
    control(connection, path, body.empty() ? Json::object() : Json::parse(body));
  }

  bool hangs(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return !stopping_ && !hanging_.empty() && path.starts_with(hanging_);
  }

  void control(const Connection& connection, const std::string& path, const Json& body) {
    if (path == "/pause_generation") {
      if (body.at("mode") == "abort") ++pauses_that_abort_;
      paused_ = true;
      return connection.reply(200, R"({"status":"ok"})");
    }
    if (path == "/continue_generation") return paused_ = false, connection.reply(200, R"({"status":"ok"})");
    if (path == "/flush_cache") return connection.reply(200, "Cache flushed.\n");
    if (path == "/abort_request") {
      const std::lock_guard lock(mutex_);
      aborted_.insert(body.at("rid").get<std::string>());
      return connection.reply(200, "");
    }
    if (path == "/update_weight_version") {
      set_version(body.at("new_version").get<std::string>());
      return connection.reply(200, R"({"success":true})");
    }
    if (path == "/update_weights_from_disk") {
      weights_ = weights_in(body.at("model_path").get<std::string>());
      set_version(body.at("weight_version").get<std::string>());
      return connection.reply(200, R"({"success":true,"message":"Succeeded to update model weights."})");
    }
    if (path.ends_with("_memory_occupation")) return connection.reply(200, "null");
    connection.reply(404, R"({"detail":"Not Found"})");
  }

  std::string version() const {
    const std::lock_guard lock(mutex_);
    return version_;
  }
  void set_version(const std::string& version) {
    const std::lock_guard lock(mutex_);
    version_ = version;
  }

  // A request, as far as it has come.
  struct Run {
    std::string name;
    std::vector<int32_t> prompt, made = {};
    std::vector<float> logprobs = {};
    std::vector<std::string> versions = {};
  };

  static Json spans_of(const std::vector<std::string>& versions) {
    Json spans = Json::array();
    for (size_t i = 0; i < versions.size(); ++i) {
      if (i == 0 || versions[i] != versions[i - 1]) spans.push_back({{"version", versions[i]}, {"start", i}});
      spans.back()["end"] = i + 1;
    }
    return spans;
  }

  static Json event_of(const Run& run, const Json& finish) {
    Json logprobs = Json::array();
    for (size_t i = 0; i < run.made.size(); ++i) logprobs.push_back({run.logprobs[i], run.made[i], nullptr});
    Json meta = {{"id", run.name},
                 {"finish_reason", finish},
                 {"weight_version", run.versions.empty() ? "" : run.versions.back()},
                 {"output_token_logprobs", logprobs},
                 {"completion_tokens", run.made.size()}};
    if (!finish.is_null()) meta["weight_versions"] = spans_of(run.versions);
    return {{"text", ""}, {"output_ids", run.made}, {"meta_info", meta}};
  }

  // Little-endian int32 [tokens but the last, layers, experts a token], as SGLang writes it.
  static std::string routes_of(int64_t tokens) {
    std::vector<int32_t> numbers;
    for (int64_t token = 0; token < tokens - 1; ++token)
      for (int64_t layer = 0; layer < 3; ++layer)
        for (int64_t slot = 0; slot < 2; ++slot) numbers.push_back(route_of(token, layer, slot));
    const size_t size = numbers.size() * sizeof(int32_t);
    std::string text(sodium_base64_ENCODED_LEN(size, sodium_base64_VARIANT_ORIGINAL), '\0');
    sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(numbers.data()), size,
                      sodium_base64_VARIANT_ORIGINAL);
    text.pop_back();
    return text;
  }

  static void send(const Connection& connection, const Json& event) {
    connection.chunk("data: " + event.dump() + "\n\n");
  }

  // False: the request was aborted, by itself or by a pause since `pauses`.
  bool may_go_on(const Connection& connection, const std::string& name, int64_t pauses) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.token_ms);
    while (paused_ || std::chrono::steady_clock::now() < end) {
      if (stopping_) throw Gone{};
      if (pauses_that_abort_ != pauses) return false;
      connection.pass_time(2);
    }
    if (pauses_that_abort_ != pauses) return false;
    const std::lock_guard lock(mutex_);
    return !aborted_.contains(name);
  }

  void generate(const Connection& connection, const Json& body) {
    Fault fault;
    {
      const std::lock_guard lock(mutex_);
      generations_.push_back(body);
      if (inject_) fault = inject_(body);
    }
    if (fault.kind == Fault::status) return connection.reply(fault.code, fault.text);
    const struct Count {
      std::atomic<int64_t>& running;
      explicit Count(std::atomic<int64_t>& owner) : running(owner) { ++running; }
      ~Count() { --running; }
    } count(running_);
    connection.begin_stream();
    stream(connection, body, fault);
    if (fault.kind != Fault::no_done) connection.chunk("data: [DONE]\n\n");
    connection.chunk("");
  }

  void stream(const Connection& connection, const Json& body, const Fault& fault) {
    const Json& sampling = body.at("sampling_params");
    const auto most = sampling.at("max_new_tokens").get<int64_t>(),
               every = sampling.value("stream_interval", int64_t{1});
    const auto stops = sampling.at("stop_token_ids").get<std::set<int32_t>>();
    Run run{body.at("rid").get<std::string>(), body.at("input_ids").get<std::vector<int32_t>>()};
    std::vector<int32_t> tokens = run.prompt;
    const int64_t pauses = pauses_that_abort_;
    for (Json finish; finish.is_null();) {
      if (fault.kind != Fault::none && static_cast<int>(run.made.size()) == fault.after)
        if (!break_off(connection, fault, run, most)) return;
      if (may_go_on(connection, run.name, pauses)) {
        run.logprobs.push_back(next_logprob(tokens, weights_));
        run.made.push_back(next_token(tokens, weights_));
        run.versions.push_back(version());
        tokens.push_back(run.made.back());
        if (stops.contains(run.made.back())) finish = {{"type", "stop"}, {"matched", run.made.back()}};
        if (static_cast<int64_t>(run.made.size()) == most) finish = {{"type", "length"}, {"length", most}};
      } else {
        finish = {{"type", "abort"}, {"message", "Aborted"}};
      }
      if (finish.is_null() && static_cast<int64_t>(run.made.size()) % every != 0) continue;
      Json event = event_of(run, finish);
      if (!finish.is_null() && body.value("return_routed_experts", false))
        event["meta_info"]["routed_experts"] = routes_of(static_cast<int64_t>(tokens.size()));
      if (!finish.is_null() && fault.kind == Fault::short_spans)
        event["meta_info"]["weight_versions"].back()["end"] = 1;
      send(connection, event);
    }
  }

  // False: the stream ends here.
  bool break_off(const Connection& connection, const Fault& fault, Run run, int64_t most) {
    const auto add = [&](int32_t token) {
      run.made.push_back(token), run.logprobs.push_back(-1), run.versions.push_back(version());
    };
    Json event;
    switch (fault.kind) {
      case Fault::reset: connection.reset_at_close(); throw Gone{};
      case Fault::truncated: connection.send_all("400\r\ndata: {\"output_ids\": [1,"); throw Gone{};
      case Fault::event: connection.chunk("data: " + fault.text + "\n\n"); return false;
      case Fault::other_id:
        add(7);
        event = event_of(run, nullptr);
        event["meta_info"]["output_token_logprobs"].back()[1] = 8;
        break;
      case Fault::nan:
        add(7);
        event = event_of(run, nullptr);
        event["meta_info"]["output_token_logprobs"].back()[0] = nullptr;
        break;
      case Fault::fewer: event = event_of(Run{run.name, {}}, nullptr); break;
      case Fault::changed:
        run.made.front() = run.made.front() == 7 ? 8 : 7;
        event = event_of(run, nullptr);
        break;
      case Fault::outside:
        add(kVocab);
        event = event_of(run, nullptr);
        break;
      case Fault::newer:
        add(7);
        run.versions.back() = "999";
        event = event_of(run, nullptr);
        break;
      case Fault::too_many:
        while (static_cast<int64_t>(run.made.size()) <= most) add(7);
        event = event_of(run, nullptr);
        break;
      case Fault::let_go: event = event_of(run, Json{{"type", "abort"}, {"message", "Aborted"}}); break;
      case Fault::hang:
        while (!stopping_) connection.pass_time(10);
        throw Gone{};
      case Fault::endless:
        for (const std::string part(size_t{1} << 20, 'x'); !stopping_;) connection.chunk("data: " + part);
        throw Gone{};
      case Fault::no_done: return false;
      default: return true;  // it is for later
    }
    send(connection, event);
    return false;
  }

  Options options_;
  std::atomic<bool> stopping_{false}, paused_{false};
  std::atomic<uint64_t> weights_{0};
  std::atomic<int64_t> running_{0}, pauses_that_abort_{0};
  mutable std::mutex mutex_;  // of what follows
  Inject inject_;
  std::string refused_, refused_part_, refused_body_, hanging_, version_ = "default";
  int refused_status_ = 500, refused_times_ = 0;
  std::vector<Json> generations_;
  std::vector<std::string> calls_;
  std::set<std::string> aborted_;
  hexad::sglang::stand_in::WeightGroups groups_;
  HttpListener listener_;  // last: its threads use the rest
};

}  // namespace sglang_test
