// What is known of one server.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "plugins/server_bridge/dialect.hpp"

namespace hexad::bridge {

// Time before a server that failed is asked again: doubles with each failure in a row.
class Backoff {
 public:
  Milliseconds next() {
    const Milliseconds now = delay_;
    delay_ = std::min(delay_ * 2, kMost);
    return now;
  }
  void reset() { delay_ = kFirst; }

 private:
  static constexpr Milliseconds kFirst{200}, kMost{15'000};
  Milliseconds delay_ = kFirst;
};

constexpr int64_t kUnknownVersion = -1;
constexpr Milliseconds kDescriptorWait{500};  // until files are opened again that this process could not open

struct Server {
  enum class State {
    starting,  // has not answered yet
    up,        // takes requests
    waiting,   // well, without the weights in force, of which there is no copy: those of the next update are its own
    down,      // failed; asked again when its back-off is over
  };
  const char* engine = "";
  int index = 0;
  int64_t incarnation = 0;  // changes when it is admitted and when it fails: what it held may be gone
  std::string url;          // without a slash at its end
  std::string api_key;      // never logged
  State state = State::starting;
  bool was_there = false;                  // has answered as a server, at some time, or its process has ended
  Clock::time_point since = Clock::now();  // that state
  Facts facts;
  int64_t version = 0;                   // of the weights that it holds
  std::unordered_set<uint64_t> running;  // requests
  int64_t load = 0;                      // tokens that they may still make
  Backoff backoff, rest;                 // rest: after answers of status 429 that do not say how long
  Clock::time_point rests_until;         // no requests are sent until then
  int failures = 0;                      // in a row
  int unhealthy = 0;                     // answers of /health in a row
  std::string last_error;
  Clock::time_point last_progress = Clock::now();  // the last token, or end, of any request
  uint64_t probe = 0, timer = 0;                   // a transfer, a timer; 0: none

  std::string label() const { return std::string(engine) + " server " + std::to_string(index) + " (" + url + ")"; }
  bool up() const { return state == State::up; }
  bool waits_for_weights() const { return state == State::waiting; }
};

}  // namespace hexad::bridge
