#include "transfer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "protocol.hpp"

namespace http_reward {
namespace {

constexpr size_t kMostReply = size_t{4} << 20;

std::string readable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

}  // namespace

Transfer::Transfer(const Settings& settings, curl_slist* headers, std::string body, Clock::duration timeout)
    : settings_(settings),
      body_(std::move(body)),
      timeout_(timeout),
      until_(Clock::now() + timeout),
      easy_(curl_easy_init()) {
  const CURLcode code = easy_ ? prepare(headers) : CURLE_FAILED_INIT;
  if (code != CURLE_OK) problem_ = fmt::format("cannot be asked: {}", curl_easy_strerror(code));
}

Transfer::~Transfer() { curl_easy_cleanup(easy_); }

// The first option that libcurl refuses, for want of memory.
CURLcode Transfer::prepare(curl_slist* headers) {
  CURLcode first = CURLE_OK;
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(easy_, option, value);
    if (first == CURLE_OK) first = code;
  };
  const auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(timeout_).count();
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_URL, settings_.url.c_str());
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
  set(CURLOPT_POSTFIELDS, body_.data());
  set(CURLOPT_TIMEOUT_MS, std::max(static_cast<long>(timeout_ms), 1L));
  set(CURLOPT_WRITEFUNCTION, &Transfer::receive);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
#if LIBCURL_VERSION_NUM >= 0x075700
  // A look-up that hangs is left to its thread, for which the end of a transfer otherwise waits, past every deadline.
  // The libcurl of this machine may be older than its header, and refuse it.
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);
#endif
  return first;
}

size_t Transfer::receive(char* bytes, size_t size, size_t count, void* to) {
  auto* transfer = static_cast<Transfer*>(to);
  transfer->too_long_ = transfer->reply_.size() + size * count > kMostReply;
  if (transfer->too_long_) return 0;
  transfer->reply_.append(bytes, size * count);
  return size * count;
}

Outcome Transfer::timed_out() const {
  const auto ms = std::chrono::round<std::chrono::milliseconds>(timeout_);
  return {fmt::format("did not answer within {:.3g} s", std::chrono::duration<double>(ms).count())};
}

Outcome Transfer::outcome(CURLcode code) const {
  if (too_long_) return {fmt::format("answered more than {} MiB", kMostReply >> 20)};
  if (code == CURLE_OPERATION_TIMEDOUT) return timed_out();
  if (code != CURLE_OK) return {fmt::format("cannot be asked: {}", *error_ ? error_ : curl_easy_strerror(code))};
  long status = 0;
  curl_off_t after = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &after);
  if (status == 200) return {};
  const bool again = status == 408 || status == 429 || status >= 500;
  const std::string said = readable(std::string(first_of(redacted(reply_, settings_.secrets))));
  return {fmt::format("answered HTTP {}: '{}'", status, said), again, static_cast<double>(after)};
}

}  // namespace http_reward
