// A bare HTTP client over libcurl's multi interface, as lean as that allows: one thread, epoll, connections and handles
// used again, bodies made beforehand.
#pragma once
#include <curl/curl.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "benchmarks/bridge_overhead/outcome.hpp"

namespace hexad::bridge_overhead {

class BareClient {
 public:
  // `parses`: it reads the events' tokens and log-probs too, and checks them; else bytes are counted and dropped.
  BareClient(const std::string& url, bool parses);
  ~BareClient();
  BareClient(const BareClient&) = delete;
  BareClient& operator=(const BareClient&) = delete;

  Outcome run(const Load& load);

 private:
  struct Slot;
  void start(Slot& slot, uint64_t index, const std::string& body);
  void wait_and_act();
  void take(Slot& slot, std::string_view bytes);
  std::string trouble_of(Slot& slot, CURLcode code, const Shape& shape) const;
  static int on_socket(CURL*, int descriptor, int what, void* self, void*);
  static int on_timer(CURLM*, long timeout_ms, void* self);
  static size_t on_bytes(char* bytes, size_t size, size_t count, void* slot);

  std::string url_;
  bool parses_;
  CURLM* multi_;
  int epoll_;
  curl_slist* headers_ = nullptr;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unordered_map<int, bool> watched_;
  Clock::time_point timer_ = Clock::time_point::max();
  int64_t bytes_ = 0;
};

}  // namespace hexad::bridge_overhead
