// Many POST requests at once on the calling thread, tried again with patience, and one deadline for all of them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "settings.hpp"
#include "transfer.hpp"

namespace http_reward {

// What the requests of one call are about: samples by their places.
struct Exchange {
  std::function<std::string(std::span<const int64_t> samples)> body;
  // Takes the body of a 200. Throws Unusable if there are no rewards in it.
  std::function<void(std::span<const int64_t> samples, std::string_view body)> take;
  std::function<void(int64_t sample, const std::string& why)> give_up;
  std::function<void(const std::string& why, bool last)> log;  // of each attempt that failed
  std::function<void(const std::string& what)> say;            // what else the log should have
  std::function<bool()> cancelled;
};

// Of all requests of a call; the key that says so, for messages: "deadline_s 600".
struct Deadline {
  Clock::time_point at;
  std::string key;
};

// Keeps its connections from call to call. One thread at a time.
class Client {
 public:
  explicit Client(const Settings& settings);  // borrowed
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Every sample is taken or given up until the deadline, and a second, whatever the server and libcurl do.
  // Connections that fail, deadlines, 408, 429, 5xx and unusable bodies are tried again, after backoff_s, twice that
  // and so on, or what Retry-After says (30 s at most each); other statuses are not. When 8 samples were given up and
  // none was taken, the rest is not tried. Returns early when cancelled.
  void run(int64_t samples, const Deadline& deadline, const Exchange& exchange);

 private:
  struct State;
  class Round;
  const Settings& settings_;
  std::unique_ptr<State> state_;
};

}  // namespace http_reward
