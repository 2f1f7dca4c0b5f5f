#include "plugins/vllm_bridge/http/transfers.hpp"

#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace hexad::vllm {

struct Transfers::Transfer {
  uint64_t name = 0;
  Transfers* owner = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  HttpRequest request;
  HttpHandler handler;
  std::string arrived;
  bool no_descriptor = false;
  char error[CURL_ERROR_SIZE] = {};

  ~Transfer() { curl_slist_free_all(headers); }
};

namespace {

constexpr long kConnections = 4096;  // kept open
constexpr size_t kIdleHandles = 1024;

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

Transfers::Transfers(EventLoop& loop) : loop_(loop) {
  start_curl();
  multi_ = curl_multi_init();
  if (!multi_) throw std::runtime_error("curl_multi_init failed");
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, socket_callback);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, timer_callback);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kConnections);
}

Transfers::~Transfers() {
  for (auto& [name, transfer] : running_) {
    curl_multi_remove_handle(multi_, transfer->easy);
    curl_easy_cleanup(transfer->easy);
  }
  for (CURL* easy : idle_) curl_easy_cleanup(easy);
  curl_multi_cleanup(multi_);
}

CURL* Transfers::take_easy() {
  if (idle_.empty()) {
    CURL* made = curl_easy_init();
    if (!made) throw std::runtime_error("curl_easy_init failed");
    return made;
  }
  CURL* easy = idle_.back();
  idle_.pop_back();
  return easy;
}

uint64_t Transfers::start(HttpRequest request, HttpHandler handler) {
  auto made = std::make_unique<Transfer>();
  Transfer& t = *made;
  t.name = next_name_++, t.owner = this, t.easy = take_easy();
  t.request = std::move(request), t.handler = std::move(handler);
  curl_easy_setopt(t.easy, CURLOPT_URL, t.request.url.c_str());
  curl_easy_setopt(t.easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(t.easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(t.easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(t.easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(t.easy, CURLOPT_ERRORBUFFER, t.error);
  curl_easy_setopt(t.easy, CURLOPT_PRIVATE, made.get());
  curl_easy_setopt(t.easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(t.easy, CURLOPT_OPENSOCKETDATA, &t.no_descriptor);
  curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, write_callback);
  curl_easy_setopt(t.easy, CURLOPT_WRITEDATA, made.get());
  curl_easy_setopt(t.easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(t.request.connect.count()));
  curl_easy_setopt(t.easy, CURLOPT_TIMEOUT_MS, static_cast<long>(t.request.timeout.count()));
  t.headers = curl_slist_append(t.headers, "Content-Type: application/json");
  t.headers = curl_slist_append(t.headers, "Expect:");  // a long prompt is sent at once
  if (!t.request.api_key.empty())
    t.headers = curl_slist_append(t.headers, ("Authorization: Bearer " + t.request.api_key).c_str());
  curl_easy_setopt(t.easy, CURLOPT_HTTPHEADER, t.headers);
  if (t.request.method != "GET") {
    curl_easy_setopt(t.easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(t.request.body.size()));
    curl_easy_setopt(t.easy, CURLOPT_POSTFIELDS, t.request.body.data());
    curl_easy_setopt(t.easy, CURLOPT_CUSTOMREQUEST, t.request.method.c_str());
  }
  running_[t.name] = std::move(made);
  curl_multi_add_handle(multi_, t.easy);
  return t.name;
}

void Transfers::abort(uint64_t transfer) {
  const auto found = running_.find(transfer);
  if (found == running_.end()) return;
  curl_multi_remove_handle(multi_, found->second->easy);
  curl_easy_cleanup(found->second->easy);  // a connection in the middle of a response is closed
  running_.erase(found);
}

int Transfers::socket_callback(CURL* easy, int descriptor, int what, void* self, void*) {
  static_cast<Transfers*>(self)->on_socket(easy, descriptor, what);
  return 0;
}

void Transfers::on_socket(CURL*, int descriptor, int what) {
  if (what == CURL_POLL_REMOVE) return loop_.unwatch(descriptor);
  const uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
  loop_.watch(descriptor, events, [this, descriptor](uint32_t ready) {
    act(descriptor, (ready & EPOLLIN ? CURL_CSELECT_IN : 0) | (ready & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                        (ready & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
  });
}

int Transfers::timer_callback(CURLM*, long timeout_ms, void* self) {
  auto* transfers = static_cast<Transfers*>(self);
  transfers->loop_.forget(std::exchange(transfers->timer_, 0));
  if (timeout_ms >= 0) {
    transfers->timer_ = transfers->loop_.after(Milliseconds(timeout_ms), [transfers] {
      transfers->timer_ = 0;
      transfers->act(CURL_SOCKET_TIMEOUT, 0);
    });
  }
  return 0;
}

// Inside curl, which may not be called: the bytes wait for deliver().
size_t Transfers::write_callback(char* bytes, size_t size, size_t count, void* transfer) {
  auto* t = static_cast<Transfer*>(transfer);
  if (t->arrived.empty()) t->owner->touched_.push_back(t->name);
  t->arrived.append(bytes, size * count);
  return size * count;
}

void Transfers::act(int descriptor, int mask) {
  int running = 0;
  curl_multi_socket_action(multi_, descriptor, mask, &running);
  deliver();
}

void Transfers::deliver() {
  const auto hand_over = [&](uint64_t name) {
    const auto found = running_.find(name);
    if (found == running_.end() || found->second->arrived.empty()) return;
    const std::string bytes = std::move(found->second->arrived);
    found->second->arrived.clear();
    long status = 0;
    curl_easy_getinfo(found->second->easy, CURLINFO_RESPONSE_CODE, &status);
    // A copy: it may abort its own transfer.
    if (const auto data = found->second->handler.data) data(status, bytes);
  };
  const std::vector<uint64_t> touched = std::exchange(touched_, {});
  for (const uint64_t name : touched) hand_over(name);
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    finish(*transfer, message->data.result);
  }
}

void Transfers::finish(Transfer& transfer, int curl_code) {
  HttpResult result;
  result.complete = curl_code == CURLE_OK;
  result.connected = curl_code != CURLE_COULDNT_CONNECT && curl_code != CURLE_COULDNT_RESOLVE_HOST;
  result.no_descriptor = !result.complete && transfer.no_descriptor;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &result.status);
  if (!result.complete)
    result.error = *transfer.error ? transfer.error : curl_easy_strerror(static_cast<CURLcode>(curl_code));
  curl_multi_remove_handle(multi_, transfer.easy);
  if (idle_.size() < kIdleHandles) {
    curl_easy_reset(transfer.easy);
    idle_.push_back(transfer.easy);
  } else {
    curl_easy_cleanup(transfer.easy);
  }
  auto ended = running_.extract(transfer.name);
  if (ended.mapped()->handler.end) ended.mapped()->handler.end(result);
}

}  // namespace hexad::vllm
