// HTTP requests over libcurl: many at a time on one thread, connections kept alive.
//
// libcurl walks all connections of a multi handle for each request, so that thousands at once share several: lanes.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/http/client/event_loop.hpp"

using CURL = void;
using CURLM = void;

namespace hexad::http::client {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::string body;         // JSON; sent with every method but GET
  std::string api_key;      // "": none
  Milliseconds timeout{0};  // of the whole request; 0: none
  Milliseconds connect{5000};
};

struct HttpResult {
  bool complete = false;  // the response came whole
  bool connected = true;  // false: nobody listens there, so the request was never seen
  // This process may open no more files: the server has nothing to do with it.
  bool no_descriptor = false;
  long status = 0;              // 0: no response
  std::string error;            // why it is not complete
  Milliseconds retry_after{0};  // what Retry-After asks for; 0: it is not there
};

struct HttpHandler {
  std::function<void(long status, std::string_view bytes)> data;  // of the body, as they come
  std::function<void(const HttpResult& result)> end;              // last, once, unless it is aborted
};

// Everything on the loop's thread.
class Transfers {
 public:
  explicit Transfers(EventLoop& loop);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // The name of the transfer. Handlers run later, never inside this call; they may start and abort others.
  uint64_t start(HttpRequest request, HttpHandler handler);
  // Closes its connection; its handler is not called any more. An ended one is no error.
  void abort(uint64_t transfer);

 private:
  struct Transfer;
  struct Lane;
  Lane& lane_with_room();
  void leave(Lane& lane);
  void drop_idle_lanes();
  std::unique_ptr<Transfer> take_idle();
  void act(Lane& lane, int descriptor, int mask);
  void deliver();
  void finish(Transfer& transfer, int curl_code);
  static int socket_callback(CURL* easy, int descriptor, int what, void* lane, void*);
  static int timer_callback(CURLM*, long timeout_ms, void* lane);
  static size_t write_callback(char* bytes, size_t size, size_t count, void* transfer);

  EventLoop& loop_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  bool will_drop_lanes_ = false;
  uint64_t next_name_ = 1;
  std::unordered_map<uint64_t, std::unique_ptr<Transfer>> running_;
  std::vector<uint64_t> touched_, delivering_;  // have bytes to deliver
  std::string delivered_;                       // the bytes that a handler looks at
  std::vector<std::unique_ptr<Transfer>> idle_;
};

// A whole answer, of a call that is no stream.
struct Answer {
  HttpResult result;
  std::string body;
  bool ok() const { return result.complete && result.status == 200; }
  // It says nothing of what was asked: the server is in trouble.
  bool failed() const { return !result.complete || result.status >= 500; }
  std::string trouble() const;  // what is wrong with one that is not ok
};

// Asks, and collects the answer; the name of the transfer. One of more than 16 MiB is given up, and is not complete. On
// the loop's thread.
uint64_t ask(Transfers& transfers, HttpRequest request, std::function<void(const Answer&)> then);

}  // namespace hexad::http::client
