#include "lib/http/local/local_server.hpp"

#include <unistd.h>

#include <csignal>
#include <optional>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <fmt/format.h>

#include "lib/http/local/peer.hpp"

namespace hexad::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using beast::http::field;
using beast::http::verb;
using Response = beast::http::response<beast::http::string_body>;
using std::chrono::milliseconds;

constexpr uint32_t kMostHeaderBytes = 8192;
constexpr int kMostConnections = 32;
constexpr int kBytesOnTheWay = 64 << 10;  // that the kernel keeps: more, and a slow reader would long seem to take none

End end_of(const tcp::endpoint& endpoint) {
  return {.address = endpoint.address().to_v4().to_uint(), .port = endpoint.port()};
}

// "localhost:8080" is "localhost".
std::string host_of(std::string_view named) { return std::string(named.substr(0, named.rfind(':'))); }

// Why the request is not answered; empty if it is.
std::string why_refused(std::string_view host, std::optional<uid_t> user) {
  const std::string name = host_of(host);
  if (name != "localhost" && name != "127.0.0.1")
    return fmt::format("got the host '{}', wanted localhost or 127.0.0.1", name);
  if (!user) return "whose connection this is cannot be told (/proc/net/tcp does not list it)";
  if (*user != 0 && *user != ::geteuid()) return "this is another user's page";
  return "";
}

// One connection: reads a request, writes its answer, closes.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const Handler& handler, milliseconds patience, int& open)
      : stream_(std::move(socket)), handler_(handler), patience_(patience), open_(open) {
    ++open_;
    parser_.header_limit(kMostHeaderBytes);
    beast::error_code ignored;
    stream_.socket().set_option(asio::socket_base::send_buffer_size(kBytesOnTheWay), ignored);
  }
  ~Session() { --open_; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    stream_.expires_after(patience_);
    beast::http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](beast::error_code error, size_t) {
      if (!error) self->write();
    });
  }

 private:
  void write() {
    response_ = answer();
    response_.set(field::connection, "close");
    response_.set(field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    response_.set(field::x_frame_options, "DENY");
    response_.prepare_payload();
    if (parser_.get().method() == verb::head) response_.body().clear();
    serializer_.emplace(response_);
    write_part();
  }

  // A page of megabytes is long on its way through a slow `ssh -L`: whoever takes some of it is waited for.
  void write_part() {
    stream_.expires_after(patience_);
    beast::http::async_write_some(stream_, *serializer_, [self = shared_from_this()](beast::error_code error, size_t) {
      if (!error && !self->serializer_->is_done()) return self->write_part();
      beast::error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  Response answer() {
    const auto& request = parser_.get();
    const tcp::socket& socket = stream_.socket();
    beast::error_code error;
    const tcp::endpoint theirs = socket.remote_endpoint(error), ours = socket.local_endpoint(error);
    if (error) return {};  // it has gone
    const std::string_view host(request[field::host].data(), request[field::host].size());
    if (const std::string why = why_refused(host, user_of(end_of(theirs), end_of(ours))); !why.empty())
      return plain(403, why + "\n");
    if (request.method() != verb::get && request.method() != verb::head) return plain(405, "wanted GET\n");
    const std::string_view target(request.target().data(), request.target().size());
    const auto known = request[field::if_none_match];
    const Answer made = made_for({.path = std::string(target.substr(0, target.find('?'))), .known = unquoted(known)});
    Response response = plain(made.status, made.body);
    response.set(field::content_type, made.type);
    if (!made.version.empty()) response.set(field::etag, "\"" + made.version + "\"");
    return response;
  }

  // An answer that cannot be made is no reason to give no other.
  Answer made_for(const Request& request) const {
    try {
      return handler_(request);
    } catch (const std::exception& error) {
      return {.status = 503, .body = std::string(error.what()) + "\n"};
    }
  }

  static std::string unquoted(beast::string_view text) {
    if (text.size() < 2) return "";
    return {text.data() + 1, text.size() - 2};
  }

  static Response plain(int status, const std::string& text) {
    Response response(static_cast<beast::http::status>(status), 11);
    response.set(field::content_type, "text/plain; charset=utf-8");
    response.body() = text;
    return response;
  }

  beast::tcp_stream stream_;
  const Handler& handler_;
  const milliseconds patience_;
  int& open_;
  beast::flat_buffer buffer_{2 * kMostHeaderBytes};
  beast::http::request_parser<beast::http::empty_body> parser_;
  Response response_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> serializer_;
};

}  // namespace

struct LocalServer::State {
  State(uint16_t port, Handler answer, milliseconds patience)
      : handler(std::move(answer)), patience(patience), acceptor(io) {
    const tcp::endpoint place(asio::ip::address_v4::loopback(), port);
    acceptor.open(place.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(place);
    acceptor.listen();
  }

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) return accept_later();  // too many open files, say
      if (open < kMostConnections) std::make_shared<Session>(std::move(socket), handler, patience, open)->read();
      accept();
    });
  }
  void accept_later() {
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([this](beast::error_code error) {
      if (!error) accept();
    });
  }

  Handler handler;
  milliseconds patience;
  int open = 0;  // connections; outlives them, for io is destroyed before it
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer pause{io};
};

LocalServer::LocalServer(uint16_t port, Handler handler, milliseconds patience) try
    : state_(std::make_unique<State>(port, std::move(handler), patience)) {
} catch (const boost::system::system_error& error) {
  throw std::system_error(error.code().value(), std::system_category(), "127.0.0.1:" + std::to_string(port));
}

LocalServer::~LocalServer() = default;

uint16_t LocalServer::port() const { return state_->acceptor.local_endpoint().port(); }

int LocalServer::run() {
  int came = 0;
  asio::signal_set signals(state_->io, SIGINT, SIGTERM);
  signals.async_wait([&](beast::error_code error, int signal) {
    if (error) return;
    came = signal;
    state_->io.stop();
  });
  state_->accept();
  state_->io.run();
  return came;
}

}  // namespace hexad::http
