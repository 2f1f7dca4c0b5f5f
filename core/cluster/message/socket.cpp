#include "core/cluster/message/socket.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <zmq.hpp>

#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/ipc/door.hpp"

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace hexad::cluster {
namespace {

// ThreadSanitizer does not see how libzmq, which is not built with it, orders threads. It is shown the memory that
// goes from one to another: a tensor's elements in an inproc message, and the reference that a frame holds.
#if defined(__SANITIZE_THREAD__)
void hand_over(void* address) { address ? __tsan_release(address) : void(); }
void take_over(void* address) { address ? __tsan_acquire(address) : void(); }
#else
void hand_over(void*) {}
void take_over(void*) {}
#endif

constexpr size_t kKeyChars = 41;  // 40 of Z85 and the NUL

// What those who have not shown the secret may take of a listener: so many connections, for so long.
constexpr int kMostUnproven = 64;
constexpr int kHandshakeMs = 10'000;

zmq::context_t& process_context() {
  static zmq::context_t* context =
      new zmq::context_t(1);  // outlives every static: threads may still hold sockets at exit
  return *context;
}

// Ends a frame's share of its tensor, on whichever thread has sent it.
void drop(void*, void* tensor) {
  take_over(tensor);
  delete static_cast<data::Tensor*>(tensor);
}

void set_common_options(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, 2000);
  socket.set(zmq::sockopt::sndhwm, 0);
  socket.set(zmq::sockopt::rcvhwm, 0);
}

}  // namespace

KeyPair make_keys() {
  char public_key[kKeyChars], secret_key[kKeyChars];
  if (zmq_curve_keypair(public_key, secret_key) != 0) {
    fail(ErrorKind::worker, "cannot make CURVE keys: {}. libzmq must be built with libsodium",
         zmq_strerror(zmq_errno()));
  }
  return {public_key, secret_key};
}

struct Socket::State {
  State(zmq::socket_type type, std::string endpoint)
      : socket(process_context(), type), endpoint(std::move(endpoint)), router(type == zmq::socket_type::router) {}
  ~State() {
    // While there is somebody to take events: libzmq's own thread would wait for ever to send the next one.
    if (events) zmq_socket_monitor(socket.handle(), nullptr, 0);
    report_dropped();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  zmq::socket_t socket;
  std::string endpoint;
  bool router;
  int64_t malformed = 0, strangers = 0;
  int64_t reported = 0;  // of both
  std::chrono::steady_clock::time_point reported_at{};
  std::optional<zmq::socket_t> events;  // of a watched connection: that it is lost; of a listener: of strangers

  // A listener's connections: how many handshakes there were when each was accepted, and in all; and whether the one
  // whose end is reported next has failed to shake hands.
  std::map<int32_t, int64_t> handshakes_before;
  int64_t handshakes = 0;
  int64_t proven_ended = 0;
  bool failed = false;
  std::optional<ipc::Door> door;
  bool is_complete = false;  // nobody else may come

  // libzmq's events of these kinds from now on.
  void monitor(int kinds);
  void count_strangers();
  void mind_door();
  // Until a message is there or the time is over; minds the door meanwhile.
  void wait(int timeout_ms);
  void report_dropped();
};

void Socket::State::monitor(int kinds) {
  static std::atomic<int> counter{0};
  const std::string place = fmt::format("inproc://watched-{}", counter++);
  if (zmq_socket_monitor(socket.handle(), place.c_str(), kinds) != 0)
    fail(ErrorKind::worker, "cannot watch the connections of {}: {}", endpoint, zmq_strerror(zmq_errno()));
  events.emplace(process_context(), zmq::socket_type::pair);
  events->set(zmq::sockopt::linger, 0);
  events->set(zmq::sockopt::rcvhwm, 0);  // else libzmq's own thread would wait for us when many have come
  events->connect(place);
}

// A stranger is a connection that ends without a handshake. libzmq reports most failures, but not one at the very
// first bytes; and of a success not which connection it was. So one that fails unsaid while another succeeds is missed.
void Socket::State::count_strangers() {
  zmq::message_t frame;
  while (zmq_msg_recv(frame.handle(), events->handle(), ZMQ_DONTWAIT) >= 0) {
    uint16_t kind = 0;
    int32_t descriptor = -1;
    if (!frame.more() || frame.size() != sizeof kind + sizeof descriptor) continue;  // our end of the connection
    std::memcpy(&kind, frame.data(), sizeof kind);
    std::memcpy(&descriptor, static_cast<const char*>(frame.data()) + sizeof kind, sizeof descriptor);
    if (kind == ZMQ_EVENT_ACCEPTED) {
      handshakes_before[descriptor] = handshakes;
    } else if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      ++handshakes;
    } else if (kind == ZMQ_EVENT_DISCONNECTED) {
      const auto found = handshakes_before.find(descriptor);
      const bool is_stranger = failed || (found != handshakes_before.end() && found->second == handshakes);
      ++(is_stranger ? strangers : proven_ended);
      if (found != handshakes_before.end()) handshakes_before.erase(found);
      failed = false;
    } else {
      failed = true;
    }
  }
  constexpr std::chrono::minutes kBetweenLines(1);
  if (reported == 0 || std::chrono::steady_clock::now() - reported_at > kBetweenLines) report_dropped();
}

void Socket::State::mind_door() {
  count_strangers();
  const int64_t unproven = static_cast<int64_t>(handshakes_before.size()) - (handshakes - proven_ended);
  if (door && !is_complete) door->mind(unproven, kMostUnproven);
}

void Socket::State::wait(int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::vector<zmq::pollitem_t> items = {{socket.handle(), 0, ZMQ_POLLIN, 0}, {events->handle(), 0, ZMQ_POLLIN, 0}};
  while (true) {
    mind_door();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    try {
      const auto patience = timeout_ms < 0 ? std::chrono::milliseconds(-1) : std::max(left, left.zero());
      const bool is_over = zmq::poll(items, patience) == 0 || (timeout_ms >= 0 && Clock::now() >= until);
      if (is_over || (items[0].revents & ZMQ_POLLIN)) return;
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) return;
      fail(ErrorKind::worker, "cannot wait for messages of {}: {}", endpoint, error.what());
    }
  }
}

void Socket::State::report_dropped() {
  const int64_t dropped = malformed + strangers;
  if (dropped == reported) return;
  reported = dropped, reported_at = std::chrono::steady_clock::now();
  spdlog::warn("{}: dropped {} connections that did not show the run's secret, and {} malformed messages, so far",
               endpoint, strangers, malformed);
}

Socket::Socket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Socket::Socket(Socket&&) noexcept = default;
Socket& Socket::operator=(Socket&&) noexcept = default;
Socket::~Socket() = default;

Socket Socket::listen(const std::string& interface, const KeyPair& keys) {
  auto state = std::make_unique<State>(zmq::socket_type::router, interface);
  set_common_options(state->socket);
  state->socket.set(zmq::sockopt::curve_server, true);
  state->socket.set(zmq::sockopt::curve_secretkey, keys.secret_key);
  state->socket.set(zmq::sockopt::router_mandatory, true);
  state->monitor(ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED);
  state->socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  state->door.emplace(interface, kMostUnproven);
  state->socket.set(zmq::sockopt::use_fd, state->door->duplicate());
  try {
    state->socket.bind(fmt::format("tcp://{}:{}", interface, state->door->port()));
  } catch (const zmq::error_t& error) {
    fail(ErrorKind::worker, "cannot listen on {}: {}", interface, error.what());
  }
  state->endpoint = state->socket.get(zmq::sockopt::last_endpoint);
  return Socket(std::move(state));
}

void Socket::watch(State& state) {
  // A host that is switched off closes nothing: it is asked.
  state.socket.set(zmq::sockopt::heartbeat_ivl, 5000);
  state.socket.set(zmq::sockopt::heartbeat_timeout, 25000);
  state.monitor(ZMQ_EVENT_DISCONNECTED);
}

Socket Socket::connect(const std::string& endpoint, const std::string& name, const std::string& server_key,
                       bool watched) {
  auto state = std::make_unique<State>(zmq::socket_type::dealer, endpoint);
  set_common_options(state->socket);
  const KeyPair own = make_keys();
  state->socket.set(zmq::sockopt::curve_serverkey, server_key);
  state->socket.set(zmq::sockopt::curve_publickey, own.public_key);
  state->socket.set(zmq::sockopt::curve_secretkey, own.secret_key);
  state->socket.set(zmq::sockopt::routing_id, name);
  if (watched) watch(*state);
  try {
    state->socket.connect(endpoint);
  } catch (const zmq::error_t& error) {
    fail(ErrorKind::worker, "cannot connect to {}: {}", endpoint, error.what());
  }
  return Socket(std::move(state));
}

std::pair<Socket, Socket> Socket::pair() {
  static std::atomic<int> counter{0};
  const std::string endpoint = fmt::format("inproc://pair-{}", counter++);
  auto first = std::make_unique<State>(zmq::socket_type::pair, endpoint);
  auto second = std::make_unique<State>(zmq::socket_type::pair, endpoint);
  set_common_options(first->socket);
  set_common_options(second->socket);
  first->socket.bind(endpoint);
  second->socket.connect(endpoint);
  return {Socket(std::move(first)), Socket(std::move(second))};
}

bool Socket::lost_peer() {
  zmq::message_t event;
  return state_->events && state_->events->recv(event, zmq::recv_flags::dontwait).has_value();
}

void Socket::refuse_newcomers() {
  state_->is_complete = true;
  state_->door->shut();
}

const std::string& Socket::endpoint() const { return state_->endpoint; }
int64_t Socket::dropped() const { return state_->malformed + state_->strangers; }

void Socket::send(const Message& message, const std::string& peer) {
  zmq::socket_t& socket = state_->socket;
  try {
    if (state_->router) socket.send(zmq::buffer(peer), zmq::send_flags::sndmore);
    const bool has_tensors = !message.tensors.empty();
    socket.send(zmq::buffer(encode_header(message)), has_tensors ? zmq::send_flags::sndmore : zmq::send_flags::none);
    for (size_t i = 0; i < message.tensors.size(); ++i) {
      // The frame shares the tensor's buffer; ZeroMQ drops the reference when it has been sent.
      auto* keep = new data::Tensor(message.tensors[i]);
      zmq::message_t frame(keep->data(), keep->nbytes(), drop, keep);
      hand_over(keep->data());
      hand_over(keep);
      socket.send(frame, i + 1 < message.tensors.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  } catch (const zmq::error_t& error) {
    fail(ErrorKind::worker, "cannot send '{}' to {}: {}", message.name(), peer.empty() ? endpoint() : peer,
         error.what());
  }
}

std::optional<Socket::Received> Socket::receive(int timeout_ms) {
  if (state_->router) state_->wait(timeout_ms);
  state_->socket.set(zmq::sockopt::rcvtimeo, state_->router ? 0 : timeout_ms);
  std::vector<Frame> frames;
  std::string peer;
  bool first = state_->router;
  while (true) {
    auto part = std::make_shared<zmq::message_t>();
    try {
      if (!state_->socket.recv(*part)) return std::nullopt;
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) return std::nullopt;
      fail(ErrorKind::worker, "cannot receive from {}: {}", endpoint(), error.what());
    }
    take_over(part->data());
    const bool more = part->more();
    if (first) {
      peer = part->to_string();
    } else {
      frames.push_back({part, part->data(), part->size()});
    }
    first = false;
    if (!more) break;
  }
  try {
    return Received{peer, decode(frames)};
  } catch (const Error&) {
    ++state_->malformed;
    return std::nullopt;
  }
}

void Socket::wait_any(std::initializer_list<Socket*> sockets, int timeout_ms) {
  std::vector<zmq::pollitem_t> items;
  for (Socket* socket : sockets) items.push_back({socket->state_->socket.handle(), 0, ZMQ_POLLIN, 0});
  try {
    zmq::poll(items, std::chrono::milliseconds(timeout_ms));
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) fail(ErrorKind::worker, "cannot wait for messages: {}", error.what());
  }
}

}  // namespace hexad::cluster
