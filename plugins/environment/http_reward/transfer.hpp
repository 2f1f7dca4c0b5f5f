// One request in libcurl: what it asks, and what it came to.
#pragma once
#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "settings.hpp"

namespace http_reward {

using Clock = std::chrono::steady_clock;

// At most days: what a clock and libcurl can count.
inline Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(count, 1e6)));
}

// Why a request brought no rewards; `failed` empty: it did.
struct Outcome {
  std::string failed = {};
  bool again = true;  // another attempt may do better
  double retry_after_s = 0;
};

class Transfer {
 public:
  // A POST of `body` that libcurl ends after so long. `headers` and `settings` are borrowed. Where libcurl cannot make
  // it, problem() says why, and easy() must not be used.
  Transfer(const Settings& settings, curl_slist* headers, std::string body, Clock::duration timeout);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* easy() const { return easy_; }
  const std::string& problem() const { return problem_; }
  const std::string& reply() const { return reply_; }
  // When libcurl should have ended it long ago.
  bool overdue() const { return Clock::now() > until_ + std::chrono::seconds(1); }

  // After its end: failed, unless the server answered 200.
  Outcome outcome(CURLcode code) const;
  Outcome timed_out() const;

 private:
  static size_t receive(char* bytes, size_t size, size_t count, void* to);
  CURLcode prepare(curl_slist* headers);

  const Settings& settings_;
  const std::string body_;
  const Clock::duration timeout_;
  const Clock::time_point until_;
  CURL* easy_;
  std::string problem_, reply_;
  bool too_long_ = false;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace http_reward
