#include "lib/http/client/transfers.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "lib/http/client/error_text.hpp"

namespace hexad::http::client {

// A multi handle, with connections of its own.
struct Transfers::Lane {
  explicit Lane(Transfers& owner);
  ~Lane() {
    curl_multi_cleanup(multi);
    owner.loop_.forget(timer);
  }

  Transfers& owner;
  CURLM* multi;
  uint64_t timer = 0;
  size_t running = 0;
};

// Used again when its request has ended, with what is the same for all of them.
struct Transfers::Transfer {
  explicit Transfer(Transfers& transfers);
  ~Transfer() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
  void describe(HttpRequest next);

  Transfers& owner;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  uint64_t name = 0;
  Lane* lane = nullptr;
  HttpRequest request;
  HttpHandler handler;
  std::string arrived;
  bool no_descriptor = false;
  char error[CURL_ERROR_SIZE] = {};
};

namespace {

constexpr size_t kLane = 128;             // requests at once in a lane
constexpr long kConnections = 2 * kLane;  // of a lane, kept open
constexpr size_t kLanesKept = 8;          // when they are idle; the others' connections are closed
constexpr auto kLaneIdle = Milliseconds(2000);
constexpr size_t kIdleHandles = 1024;
constexpr curl_off_t kMostSeconds = 31'536'000;   // that Retry-After is taken to mean
constexpr size_t kMostAnswer = size_t{16} << 20;  // bytes, of a call that is no stream

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

// curl's own does not tell why there is no socket.
curl_socket_t open_socket(void* no_descriptor, curlsocktype, curl_sockaddr* address) {
  const int made = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  *static_cast<bool*>(no_descriptor) = made < 0 && (errno == EMFILE || errno == ENFILE);
  return made < 0 ? CURL_SOCKET_BAD : made;
}

}  // namespace

Transfers::Lane::Lane(Transfers& owner) : owner(owner), multi(curl_multi_init()) {
  if (!multi) throw std::runtime_error("curl_multi_init failed");
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_callback);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_callback);
  curl_multi_setopt(multi, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, kConnections);
}

Transfers::Transfer::Transfer(Transfers& transfers) : owner(transfers), easy(curl_easy_init()) {
  if (!easy) throw std::runtime_error("curl_easy_init failed");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &no_descriptor);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_callback);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
}

void Transfers::Transfer::describe(HttpRequest next) {
  const bool other_key = !headers || next.api_key != request.api_key;
  request = std::move(next);
  *error = 0, no_descriptor = false;
  if (other_key) {
    curl_slist_free_all(std::exchange(headers, nullptr));
    headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");  // a long prompt is sent at once
    if (!request.api_key.empty())
      headers = curl_slist_append(headers, ("Authorization: Bearer " + request.api_key).c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  }
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect.count()));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  if (request.method == "GET") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, nullptr);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

Transfers::Transfers(EventLoop& loop) : loop_(loop) { start_curl(); }

Transfers::~Transfers() {
  for (auto& [name, transfer] : running_) curl_multi_remove_handle(transfer->lane->multi, transfer->easy);
  running_.clear();
  idle_.clear();
}

std::unique_ptr<Transfers::Transfer> Transfers::take_idle() {
  if (idle_.empty()) return std::make_unique<Transfer>(*this);
  auto transfer = std::move(idle_.back());
  idle_.pop_back();
  return transfer;
}

// The first one, so that few lanes have most of the connections.
Transfers::Lane& Transfers::lane_with_room() {
  for (const auto& lane : lanes_) {
    if (lane->running < kLane) return *lane;
  }
  return *lanes_.emplace_back(std::make_unique<Lane>(*this));
}

void Transfers::leave(Lane& lane) {
  if (--lane.running > 0 || lanes_.size() <= kLanesKept || std::exchange(will_drop_lanes_, true)) return;
  loop_.after(kLaneIdle, [this] {
    will_drop_lanes_ = false;
    drop_idle_lanes();
  });
}

// After many requests at once.
void Transfers::drop_idle_lanes() {
  while (lanes_.size() > kLanesKept && lanes_.back()->running == 0) lanes_.pop_back();
}

uint64_t Transfers::start(HttpRequest request, HttpHandler handler) {
  std::unique_ptr<Transfer> made = take_idle();
  Transfer& t = *made;
  t.name = next_name_++, t.lane = &lane_with_room();
  t.describe(std::move(request));
  t.handler = std::move(handler);
  running_[t.name] = std::move(made);
  ++t.lane->running;
  curl_multi_add_handle(t.lane->multi, t.easy);
  return t.name;
}

void Transfers::abort(uint64_t transfer) {
  const auto found = running_.find(transfer);
  if (found == running_.end()) return;
  Lane& lane = *found->second->lane;
  curl_multi_remove_handle(lane.multi, found->second->easy);  // closes a connection in the middle of a response
  running_.erase(found);
  leave(lane);
}

int Transfers::socket_callback(CURL*, int descriptor, int what, void* to, void*) {
  auto* lane = static_cast<Lane*>(to);
  EventLoop& loop = lane->owner.loop_;
  if (what == CURL_POLL_REMOVE) return loop.unwatch(descriptor), 0;
  const uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
  loop.watch(descriptor, events, [lane, descriptor](uint32_t ready) {
    lane->owner.act(*lane, descriptor,
                    (ready & EPOLLIN ? CURL_CSELECT_IN : 0) | (ready & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                        (ready & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
  });
  return 0;
}

int Transfers::timer_callback(CURLM*, long timeout_ms, void* to) {
  auto* lane = static_cast<Lane*>(to);
  EventLoop& loop = lane->owner.loop_;
  loop.forget(std::exchange(lane->timer, 0));
  if (timeout_ms >= 0) {
    lane->timer = loop.after(Milliseconds(timeout_ms), [lane] {
      lane->timer = 0;
      lane->owner.act(*lane, CURL_SOCKET_TIMEOUT, 0);
    });
  }
  return 0;
}

// Inside curl, which may not be called: the bytes wait for deliver().
size_t Transfers::write_callback(char* bytes, size_t size, size_t count, void* transfer) {
  auto* t = static_cast<Transfer*>(transfer);
  if (t->arrived.empty()) t->owner.touched_.push_back(t->name);
  t->arrived.append(bytes, size * count);
  return size * count;
}

void Transfers::act(Lane& lane, int descriptor, int mask) {
  int running = 0;
  curl_multi_socket_action(lane.multi, descriptor, mask, &running);
  deliver();
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(lane.multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    finish(*transfer, message->data.result);
  }
}

void Transfers::deliver() {
  delivering_.swap(touched_);
  for (const uint64_t name : delivering_) {
    const auto found = running_.find(name);
    if (found == running_.end() || found->second->arrived.empty()) continue;
    delivered_.swap(found->second->arrived);
    found->second->arrived.clear();
    long status = 0;
    curl_easy_getinfo(found->second->easy, CURLINFO_RESPONSE_CODE, &status);
    // A copy: it may abort its own transfer.
    if (const auto data = found->second->handler.data) data(status, delivered_);
  }
  delivering_.clear();
}

void Transfers::finish(Transfer& transfer, int curl_code) {
  HttpResult result;
  result.complete = curl_code == CURLE_OK;
  result.connected = curl_code != CURLE_COULDNT_CONNECT && curl_code != CURLE_COULDNT_RESOLVE_HOST;
  result.no_descriptor = !result.complete && transfer.no_descriptor;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &result.status);
  curl_off_t seconds = 0;  // of a date too
  if (curl_easy_getinfo(transfer.easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0)
    result.retry_after = std::chrono::seconds(std::min<curl_off_t>(seconds, kMostSeconds));
  if (!result.complete)
    result.error = *transfer.error ? transfer.error : curl_easy_strerror(static_cast<CURLcode>(curl_code));
  curl_multi_remove_handle(transfer.lane->multi, transfer.easy);
  leave(*transfer.lane);
  const HttpHandler handler = std::exchange(transfer.handler, {});
  std::string().swap(transfer.request.body), std::string().swap(transfer.arrived);  // they may be large
  auto ended = running_.extract(transfer.name);
  if (idle_.size() < kIdleHandles) idle_.push_back(std::move(ended.mapped()));
  if (handler.end) handler.end(result);
}

std::string Answer::trouble() const {
  if (!result.complete) return result.error;
  return fmt::format("status {}: {}", result.status, error_text(body));
}

uint64_t ask(Transfers& transfers, HttpRequest request, std::function<void(const Answer&)> then) {
  struct Asked {
    Answer answer;
    std::function<void(const Answer&)> then;
    uint64_t name = 0;
  };
  auto asked = std::make_shared<Asked>();
  asked->then = std::move(then);
  const auto take = [asked, &transfers](long status, std::string_view bytes) {
    asked->answer.body += bytes;
    if (asked->answer.body.size() <= kMostAnswer) return;
    asked->answer.body.clear();
    asked->answer.result = {.status = status, .error = fmt::format("it answered more than {} MiB", kMostAnswer >> 20)};
    transfers.abort(asked->name);
    asked->then(asked->answer);
  };
  asked->name = transfers.start(std::move(request), {take, [asked](const HttpResult& result) {
                                                       asked->answer.result = result;
                                                       asked->then(asked->answer);
                                                     }});
  return asked->name;
}

}  // namespace hexad::http::client
