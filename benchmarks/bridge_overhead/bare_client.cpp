#include "benchmarks/bridge_overhead/bare_client.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "benchmarks/bridge_overhead/requests.hpp"

namespace hexad::bridge_overhead {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

struct BareClient::Slot {
  BareClient* owner = nullptr;
  CURL* easy = nullptr;
  uint64_t index = 0;
  std::string pending;  // of an event
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  ~Slot() { curl_easy_cleanup(easy); }
};

BareClient::BareClient(const std::string& url, bool parses)
    : url_(url + "/inference/v1/generate"),
      parses_(parses),
      multi_(curl_multi_init()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  headers_ = curl_slist_append(curl_slist_append(headers_, "Content-Type: application/json"), "Expect:");
}

BareClient::~BareClient() {
  for (const auto& slot : slots_) curl_multi_remove_handle(multi_, slot->easy);
  slots_.clear();
  curl_multi_cleanup(multi_);
  curl_slist_free_all(headers_);
  ::close(epoll_);
}

int BareClient::on_socket(CURL*, int descriptor, int what, void* self, void*) {
  auto& client = *static_cast<BareClient*>(self);
  if (what == CURL_POLL_REMOVE) {
    client.watched_.erase(descriptor);
    return ::epoll_ctl(client.epoll_, EPOLL_CTL_DEL, descriptor, nullptr), 0;
  }
  epoll_event event{};
  event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
  event.data.fd = descriptor;
  const bool known = !client.watched_.emplace(descriptor, true).second;
  ::epoll_ctl(client.epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
  return 0;
}

int BareClient::on_timer(CURLM*, long timeout_ms, void* self) {
  static_cast<BareClient*>(self)->timer_ =
      timeout_ms < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(timeout_ms);
  return 0;
}

size_t BareClient::on_bytes(char* bytes, size_t size, size_t count, void* slot) {
  auto& s = *static_cast<Slot*>(slot);
  s.owner->bytes_ += static_cast<int64_t>(size * count);
  if (s.owner->parses_) s.owner->take(s, {bytes, size * count});
  return size * count;
}

void BareClient::take(Slot& slot, std::string_view bytes) {
  slot.pending += bytes;
  size_t begin = 0;
  for (size_t end; (end = slot.pending.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    const std::string_view data = std::string_view(slot.pending).substr(begin + 6, end - begin - 6);
    if (data == "[DONE]") continue;
    const auto json = nlohmann::json::parse(data);
    const auto& choice = json.at("choices").at(0);
    for (const auto& id : choice.at("token_ids")) slot.tokens.push_back(id.get<int32_t>());
    for (const auto& entry : choice.at("logprobs").at("content"))
      slot.logprobs.push_back(entry.at("logprob").get<float>());
  }
  slot.pending.erase(0, begin);
}

void BareClient::start(Slot& slot, uint64_t index, const std::string& body) {
  slot.owner = this, slot.index = index;
  slot.tokens.clear(), slot.logprobs.clear(), slot.pending.clear();
  if (!slot.easy) {
    slot.easy = curl_easy_init();
    curl_easy_setopt(slot.easy, CURLOPT_URL, url_.c_str());
    curl_easy_setopt(slot.easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(slot.easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(slot.easy, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(slot.easy, CURLOPT_PRIVATE, &slot);
    curl_easy_setopt(slot.easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(slot.easy, CURLOPT_WRITEDATA, &slot);
  }
  curl_easy_setopt(slot.easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(slot.easy, CURLOPT_POSTFIELDS, body.data());
  curl_multi_add_handle(multi_, slot.easy);
}

void BareClient::wait_and_act() {
  epoll_event events[256];
  int timeout = 200, running = 0;
  if (timer_ != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(timer_ - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<int64_t>(left, 0, timeout));
  }
  const int count = ::epoll_wait(epoll_, events, 256, timeout);
  for (int i = 0; i < count; ++i) {
    const uint32_t ready = events[i].events;
    curl_multi_socket_action(multi_, events[i].data.fd,
                             (ready & EPOLLIN ? CURL_CSELECT_IN : 0) | (ready & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                                 (ready & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
                             &running);
  }
  if (timer_ <= Clock::now()) {
    timer_ = Clock::time_point::max();
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

std::string BareClient::trouble_of(Slot& slot, CURLcode code, const Shape& shape) const {
  long status = 0;
  curl_easy_getinfo(slot.easy, CURLINFO_RESPONSE_CODE, &status);
  if (code != CURLE_OK) return curl_easy_strerror(code);
  if (status != 200) return fmt::format("status {}", status);
  if (!parses_) return "";
  if (slot.tokens.size() != slot.logprobs.size()) return "other counts of tokens and log-probs";
  return difference(slot.index, slot.tokens.data(), slot.logprobs.data(), static_cast<int64_t>(slot.tokens.size()),
                    shape);
}

Outcome BareClient::run(const Load& load) {
  const std::vector<std::string> bodies = Requests(load).bodies();
  while (static_cast<int64_t>(slots_.size()) < load.concurrency) slots_.push_back(std::make_unique<Slot>());
  Tally tally(load);
  bytes_ = 0;
  int64_t started = 0;
  const auto start_next = [&](Slot& slot) {
    if (started == load.count) return;
    const auto at = static_cast<uint64_t>(started++);
    tally.begin(load.first + at);
    start(slot, load.first + at, bodies[at]);
  };
  for (int64_t i = 0; i < load.concurrency; ++i) start_next(*slots_[static_cast<size_t>(i)]);
  auto heard = Clock::now();
  while (tally.done() < load.count && Clock::now() - heard < kPatience) {
    wait_and_act();
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      heard = Clock::now();
      Slot* slot = nullptr;
      const CURLcode code = message->data.result;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
      curl_multi_remove_handle(multi_, slot->easy);
      tally.end(slot->index, trouble_of(*slot, code, load.shape));
      start_next(*slot);
    }
  }
  return tally.finish(bytes_);
}

}  // namespace hexad::bridge_overhead
