// A small HTTP server for one user of this machine: what a program shows in a browser.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hexad::http {

struct Request {
  std::string path;   // without what follows a '?'
  std::string known;  // the version that the browser has (If-None-Match); empty: none
};

struct Answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::string version = {};  // of the body (ETag); empty: it may be another every time
};

// Called for each GET and HEAD, by the thread that runs the server. What it throws is answered: 503 with the reason.
using Handler = std::function<Answer(const Request&)>;

// Listens on 127.0.0.1. Answers only this user and root (user_of), so that what is in files of their owner's alone
// stays theirs, and only requests for localhost or 127.0.0.1, whatever the port: a page of a stranger's whose name was
// made to lead here (DNS rebinding) sends its own name. Others get 403 with the reason. A connection has `patience` to
// send its request and as long to take each part of the answer, and no more than 32 are open at once; each serves one
// request.
class LocalServer {
 public:
  // `port` 0: one that is free. Throws std::system_error if it cannot be had.
  LocalServer(uint16_t port, Handler handler, std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  uint16_t port() const;
  // Serves until SIGINT or SIGTERM comes, and returns which.
  int run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hexad::http
