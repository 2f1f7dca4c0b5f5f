// A server that speaks vLLM's HTTP and can be told to fail: a thread a connection, on 127.0.0.1.
//
// Its model: the next token is a hash of all tokens before it and of the weights that it has loaded, so that a sample is
// the same whoever finishes it.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/plugins/vllm_bridge/support/weight_transfer.hpp"

namespace vllm_test {

constexpr int kVocab = 97;

inline uint64_t hash_of(const std::vector<int32_t>& tokens, uint64_t weights) {
  uint64_t h = 1469598103934665603ull ^ weights;
  for (const int32_t token : tokens) h = (h ^ static_cast<uint64_t>(token)) * 1099511628211ull;
  h ^= h >> 29;
  return h * 0xBF58476D1CE4E5B9ull >> 20;
}
inline int32_t next_token(const std::vector<int32_t>& tokens, uint64_t weights) {
  return static_cast<int32_t>(5 + hash_of(tokens, weights) % (kVocab - 5));
}
inline float next_logprob(const std::vector<int32_t>& tokens, uint64_t weights) {
  return -static_cast<float>(hash_of(tokens, weights) % 1024) / 256.0f;
}
// What the weights in a folder do to the model.
inline uint64_t weights_in(const std::filesystem::path& dir) {
  uint64_t h = 7;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().extension() == ".safetensors") files.insert(entry.path());
  }
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    for (std::istreambuf_iterator<char> at(file), end; at != end; ++at)
      h = (h ^ static_cast<uint64_t>(static_cast<unsigned char>(*at))) * 1099511628211ull;
  }
  return h;
}

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
  } kind = none;
  int after = 0;
  int code = 500;
};

class FakeVllm {
 public:
  struct Options {
    bool tokens_api = true, dev_mode = true;
    Json reset_success = true;
    std::string version = "0.24.0", api_key = {}, logprobs_mode = "processed_logprobs", weight_transfer = {};
    int port = 0, token_ms = 0;
  };
  using Inject = std::function<Fault(const Json& body)>;

  FakeVllm() : FakeVllm(Options{}) {}
  explicit FakeVllm(Options options) : options_(std::move(options)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(options_.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 || ::listen(listener_, 1024) < 0)
      throw std::runtime_error("fake vLLM cannot listen");
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeVllm() { stop(); }

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // As if it were killed: every connection is reset.
  void stop() {
    if (stopping_.exchange(true)) return;
    {
      const std::lock_guard lock(mutex_);
      for (const int connection : connections_) reset(connection);
      changed_.notify_all();
    }
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
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
  int64_t running() const { return running_; }
  int64_t most_running() const { return most_running_; }
  bool paused() const { return paused_; }
  uint64_t weights() const { return weights_; }
  std::string seen_key() const {
    const std::lock_guard lock(mutex_);
    return seen_key_;
  }

 private:
  struct Gone {};  // the connection

  static void reset(int connection) {
    const linger now{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::shutdown(connection, SHUT_RDWR);
  }

  void accept_all() {
    while (!stopping_) {
      pollfd wait{listener_, POLLIN, 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      const int yes = 1;
      ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      const std::lock_guard lock(mutex_);
      connections_.insert(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    try {
      std::string buffer;
      while (!stopping_) answer_one(connection, buffer);
    } catch (const Gone&) {
    }
    const std::lock_guard lock(mutex_);
    connections_.erase(connection);
    ::close(connection);
  }

  static void receive(int connection, std::string& buffer) {
    char bytes[16384];
    const ssize_t count = ::recv(connection, bytes, sizeof bytes, 0);
    if (count <= 0) throw Gone{};
    buffer.append(bytes, static_cast<size_t>(count));
  }
  static void send_all(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) throw Gone{};
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  static void reply(int connection, int status, const std::string& body) {
    send_all(connection, "HTTP/1.1 " + std::to_string(status) +
                             " X\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                             "\r\n\r\n" + body);
  }
  static void chunk(int connection, const std::string& data) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", data.size());
    send_all(connection, size + data + "\r\n");
  }

  void answer_one(int connection, std::string& buffer) {
    size_t head = 0;
    while ((head = buffer.find("\r\n\r\n")) == std::string::npos) receive(connection, buffer);
    const std::string header = buffer.substr(0, head);
    size_t length = 0;
    if (const size_t at = header.find("Content-Length: "); at != std::string::npos)
      length = std::stoul(header.substr(at + 16));
    while (buffer.size() < head + 4 + length) receive(connection, buffer);
    const std::string body = buffer.substr(head + 4, length);
    buffer.erase(0, head + 4 + length);
    const size_t space = header.find(' '), end = header.find(' ', space + 1);
    const std::string method = header.substr(0, space), path = header.substr(space + 1, end - space - 1);
    std::string key;
    if (const size_t at = header.find("Authorization: Bearer "); at != std::string::npos)
      key = header.substr(at + 22, header.find("\r\n", at) - at - 22);
    handle(connection, method, path, key, body);
  }

  void handle(int connection, const std::string& method, const std::string& path, const std::string& key,
              const std::string& body) {
    bool refused = false;
    {
      std::unique_lock lock(mutex_);
      calls_.push_back(method + " " + path + (method == "POST" && path == "/collective_rpc" ? " " + body : ""));
      seen_key_ = key;
      refused = !refused_.empty() && path.starts_with(refused_) && refused_times_-- > 0;
      changed_.wait(lock, [&] { return stopping_ || gate_.empty() || !path.starts_with(gate_); });
    }
    const auto error = [&](int status, const std::string& text) {
      reply(connection, status, Json{{"error", {{"message", text}, {"code", status}}}}.dump());
    };
    if (refused) return error(refused_status_, "told to refuse");
    if (path == "/health") return healthy_ ? reply(connection, 200, "") : error(503, "engine dead");
    if (path == "/version") return reply(connection, 200, Json{{"version", options_.version}}.dump());
    const bool generates = (options_.tokens_api && path == "/inference/v1/generate") || path == "/v1/completions";
    if (generates && !options_.api_key.empty() && key != options_.api_key) return error(401, "Unauthorized");
    if (generates) return generate(connection, path == "/inference/v1/generate", Json::parse(body));
    if (!options_.dev_mode) return error(404, "Not Found");
    if (path == "/is_paused") return reply(connection, 200, Json{{"is_paused", paused_.load()}}.dump());
    if (path.starts_with("/server_info")) {
      Json config = {{"model_config", {{"logprobs_mode", options_.logprobs_mode}}},
                     {"weight_transfer_config", nullptr}};
      if (!options_.weight_transfer.empty()) config["weight_transfer_config"] = {{"backend", options_.weight_transfer}};
      return reply(connection, 200, Json{{"vllm_config", config}}.dump());
    }
    if (path.starts_with("/pause")) return set_paused(true), reply(connection, 200, R"({"status":"paused"})");
    if (path.starts_with("/resume")) return set_paused(false), reply(connection, 200, R"({"status":"resumed"})");
    if (path == "/reset_prefix_cache") return reply(connection, 200, Json{{"success", options_.reset_success}}.dump());
    if (path == "/collective_rpc") {
      weights_ = weights_in(Json::parse(body).at("kwargs").at("weights_path").get<std::string>());
      return reply(connection, 200, R"({"results":[null]})");
    }
    const std::optional<std::string> wrong =
        options_.weight_transfer.empty() ? std::nullopt : transfer_.take(path, Json::parse(body), weights_);
    if (!wrong) return error(404, "Not Found");
    wrong->empty() ? reply(connection, 200, R"({"message":"done"})") : error(500, *wrong);
  }

  void set_paused(bool paused) {
    const std::lock_guard lock(mutex_);
    paused_ = paused;
    changed_.notify_all();
  }

  // Waits for a pause to end, and for the time of a token. Throws if the client has gone.
  void pass_time(int connection) {
    std::unique_lock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.token_ms);
    while (paused_ || std::chrono::steady_clock::now() < end) {
      if (stopping_) throw Gone{};
      lock.unlock();
      pollfd wait{connection, POLLIN, 0};
      char byte = 0;
      const int ready = ::poll(&wait, 1, paused_ ? 5 : std::min(options_.token_ms, 5));
      if (ready > 0 && ::recv(connection, &byte, 1, MSG_PEEK) <= 0) throw Gone{};
      lock.lock();
    }
  }

  void generate(int connection, bool tokens_api, const Json& body) {
    const Json& sampling = tokens_api ? body.value("sampling_params", Json::object()) : body;
    const char* prompt_key = tokens_api ? "token_ids" : "prompt";
    if (!body.contains(prompt_key)) return reply(connection, 400, R"({"error":{"message":"no prompt"}})");
    Fault fault;
    {
      const std::lock_guard lock(mutex_);
      generations_.push_back(body);
      if (inject_) fault = inject_(body);
    }
    if (fault.kind == Fault::status)
      return reply(connection, fault.code, R"({"error":{"message":"injected","code":500}})");
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
    send_all(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream(connection, tokens_api, body.at(prompt_key).get<std::vector<int32_t>>(), sampling, fault);
    if (fault.kind == Fault::no_done) return chunk(connection, "");
    chunk(connection, "data: [DONE]\n\n");
    chunk(connection, "");
  }

  void stream(int connection, bool tokens_api, std::vector<int32_t> tokens, const Json& sampling, const Fault& fault) {
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
        chunk(connection, event({token}, {logprob}, nullptr));
        throw Gone{};
      }
      chunk(connection, event({token}, {logprob}, stop ? Json("stop") : last ? Json("length") : Json()));
      if (last && fault.kind == Fault::hang && i + 1 == fault.after) break_off(connection, fault, event, most);
      if (last) return;
    }
  }

  // False: the stream ends here, as it should for the client.
  template <typename Event>
  bool break_off(int connection, const Fault& fault, const Event& event, int64_t most) {
    switch (fault.kind) {
      case Fault::reset: {
        const linger now{1, 0};
        ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        throw Gone{};
      }
      case Fault::truncated: send_all(connection, "400\r\ndata: {\"choices\": [{\"ind"); throw Gone{};
      case Fault::bad_json: chunk(connection, "data: {\"choices\": [}\n\n"); break;
      case Fault::bad_count: chunk(connection, event({7, 8}, {-1.0f}, nullptr)); break;
      case Fault::too_many:
        chunk(connection, event(std::vector<int32_t>(static_cast<size_t>(most) + 1, 7),
                                std::vector<float>(static_cast<size_t>(most) + 1, -1), nullptr));
        break;
      case Fault::positive: chunk(connection, event({7}, {0.5f}, nullptr)); break;
      case Fault::error_event: chunk(connection, "data: {\"error\": {\"message\": \"engine broke\"}}\n\n"); break;
      case Fault::short_length: chunk(connection, event({7}, {-1.0f}, "length")); break;
      case Fault::hang:
        while (!stopping_) {
          pollfd wait{connection, POLLIN, 0};
          char byte = 0;
          if (::poll(&wait, 1, 10) > 0 && ::recv(connection, &byte, 1, MSG_PEEK) <= 0) throw Gone{};
        }
        throw Gone{};
      default: return fault.kind == Fault::no_finish_chunk;
    }
    return false;
  }

  Options options_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopping_{false}, healthy_{true}, paused_{false};
  std::atomic<uint64_t> weights_{0};
  std::atomic<int64_t> running_{0}, most_running_{0};
  std::thread acceptor_;
  WeightTransfer transfer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Inject inject_;
  std::string refused_, gate_;
  int refused_status_ = 500, refused_times_ = 0;
  std::vector<Json> generations_;
  std::vector<std::string> calls_;
  std::string seen_key_;
  std::set<int> connections_;
  std::vector<std::thread> threads_;
};

}  // namespace vllm_test
