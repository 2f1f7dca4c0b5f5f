// What reaches the controller's port. An input that begins with an odd byte ("a": after) is a message of a peer that
// has shown the secret: frames as those of control_frames. Any other ("b": before) is what a stranger sends, as raw
// bytes. A stranger is not heard, a message is heard or counted as malformed, and the peer is heard all the same.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/cluster/message/socket.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;
using cluster::Socket;

namespace {

constexpr const char* kPeer = "7";

[[noreturn]] void found(const char* what) {
  std::fprintf(stderr, "control_peers: %s\n", what);
  std::abort();
}

class Controller {
 public:
  Controller() : keys_(cluster::make_keys()), own_(cluster::make_keys()), server_(Socket::listen("127.0.0.1", keys_)) {
    void* const context = zmq_ctx_new();
    peer_ = zmq_socket(context, ZMQ_DEALER);
    const auto set = [&](int option, const std::string& value) {
      if (zmq_setsockopt(peer_, option, value.data(), value.size()) != 0) found("the peer's socket has no such option");
    };
    set(ZMQ_CURVE_SERVERKEY, keys_.public_key);
    set(ZMQ_CURVE_PUBLICKEY, own_.public_key);
    set(ZMQ_CURVE_SECRETKEY, own_.secret_key);
    set(ZMQ_ROUTING_ID, kPeer);
    if (zmq_connect(peer_, server_.endpoint().c_str()) != 0) found("the peer cannot connect");
    hear_peer();
  }

  void stranger(std::string_view bytes) {
    // A frame's length of eight bytes is not sent: libzmq takes as much address space before any of it has come.
    constexpr size_t kGreeting = 64;
    if (bytes.size() > kGreeting && (bytes[kGreeting] & 2)) bytes = bytes.substr(0, kGreeting);
    const int64_t before = server_.dropped();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port =
        htons(static_cast<uint16_t>(std::stoi(server_.endpoint().substr(server_.endpoint().rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) found("nobody listens");
    [[maybe_unused]] const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(fd);
    for (int i = 0; i < 100 && server_.dropped() == before; ++i)
      if (server_.receive(1)) found("a stranger was heard");
    hear_peer();
  }

  void message(const std::vector<std::string_view>& frames) {
    const int64_t before = server_.dropped();
    for (size_t i = 0; i < frames.size(); ++i)
      zmq_send(peer_, frames[i].data(), frames[i].size(), i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
    wait([&](bool heard) { return heard || server_.dropped() > before; });
  }

 private:
  void hear_peer() {
    constexpr std::string_view kHello = R"({"event": "hello", "tensors": []})";
    zmq_send(peer_, kHello.data(), kHello.size(), 0);
    wait([](bool heard) { return heard; });
  }

  template <typename Done>
  void wait(const Done& done) {
    constexpr std::chrono::seconds kPatience(10);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      const auto received = server_.receive(20);
      if (received && received->peer != kPeer) found("somebody else was heard");
      if (done(received.has_value())) return;
    }
    found("the peer is heard no more");
  }

  cluster::KeyPair keys_, own_;
  Socket server_;
  void* peer_ = nullptr;
};

std::vector<std::string_view> frames_in(std::string_view bytes) {
  const size_t newline = std::min(bytes.find('\n'), bytes.size());
  std::vector<std::string_view> frames = {bytes.substr(0, newline)};
  for (size_t at = newline + 1; at < bytes.size();) {
    const size_t count = static_cast<uint8_t>(bytes[at]);
    frames.push_back(bytes.substr(at + 1, count));
    at += 1 + count;
  }
  return frames;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Controller* const controller = new Controller;  // its threads run until the end
  if (size == 0) return 0;
  const std::string_view rest = fuzz::text_of(data + 1, size - 1);
  fuzz::attempt([&] { data[0] % 2 == 1 ? controller->message(frames_in(rest)) : controller->stranger(rest); });
  return 0;
}
