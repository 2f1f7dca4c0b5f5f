// A stand-in for servers of an engine, which fails as the schedule in the folder $HEXAD_FAULTS says. Points:
//   launch                                  when it has been started
//   prefill, decode                         of a request, before its first token, and in the middle
//   save, checkpoint                        while the run writes weights for the servers, or a checkpoint
//   what the engine's paths are called      probes, and calls of an update of the weights
// Kinds: kill, late_kill (when it has done what it was asked), stop (and continued later), hang (stopped for good),
// status (500, as status_text and status_object say it too), unavailable (503), page (200, and HTML), truncated, reset,
// disk_full; in the middle of a stream what the engine has beside these. With $HEXAD_FAULTS_ALWAYS, a point and a kind,
// every server has that one fault at every occasion.
//
// `Engine` has Server, Generation and Options of its stand-in and the functions that are used here.
#pragma once
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "plugins/server_bridge/stand_in/http_server.hpp"
#include "tests/run/faults/disk.hpp"
#include "tests/run/faults/schedule.hpp"

extern char** environ;

namespace faults {

using hexad::bridge::stand_in::Connection;
using hexad::bridge::stand_in::Gone;
using hexad::bridge::stand_in::Request;

inline const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

constexpr int64_t kMiddle = 5;         // tokens
constexpr int64_t kAloneForMs = 1000;  // and again, while a disk is full
constexpr int64_t kProbesTakeMs = 100;

// The fault of every occasion: "POINT KIND".
inline std::optional<Fault> always() {
  const std::string text = variable("HEXAD_FAULTS_ALWAYS");
  if (text.empty()) return std::nullopt;
  const size_t space = text.find(' ');
  return Fault{"always " + text, text.substr(0, space), text.substr(space + 1)};
}

// Bodies of errors as servers have them: OpenAI's, a text, and an older one.
inline std::string error_body(const Fault& fault, int status) {
  const std::string text = "fault " + fault.name;
  if (fault.kind.ends_with("_text")) return Json{{"error", text}}.dump();
  if (fault.kind.ends_with("_object")) return Json{{"object", "error"}, {"message", text}, {"code", status}}.dump();
  return Json{{"error", {{"message", text}}}}.dump();
}

template <typename Engine>
class FaultyServer : public Engine::Server {
 public:
  FaultyServer(Schedule& schedule, const typename Engine::Options& options)
      : Engine::Server(options.model_dir, options.api_key),
        schedule_(schedule),
        port_(options.port),
        token_ms_(std::atoi(variable("HEXAD_FAULTS_TOKEN_MS"))) {}

  void launch() {
    const Fault* fault = take("launch");
    if (!fault) return;
    note(*fault, "", "");
    end_or_stop(*fault);
  }

  // What wants an answer to fail at meets the next token that is drawn.
  void watch(const std::string& point) {
    const Begun begun(point);
    for (;;) {
      if (!begun.wait(-1)) continue;
      const Fault* fault = schedule_.take(point);
      if (!fault) continue;
      if (fault->kind == "disk_full") {
        fill_disk(*fault, begun);
      } else if (fault->kind == "kill" || fault->kind == "stop" || fault->kind == "hang") {
        note(*fault, "", "");
        end_or_stop(*fault);
      } else {
        schedule_.hand_on(*fault);
      }
    }
  }

  void handle(const Connection& to, const Request& request) override {
    const std::string point = Engine::point_of(request);
    to.check_alive();
    const Fault* fault = take(point);
    if (!fault) return Engine::Server::handle(to, request);
    note(*fault, point == "prefill" ? Engine::name_of(request) : "", request.path.substr(0, request.path.find('?')));
    if (fault->kind == "late_kill" || fault->kind == "truncated") act_silently(request, point);
    end_or_stop(*fault);
    const std::string& kind = fault->kind;
    if (kind.starts_with("status")) return to.reply(500, error_body(*fault, 500));
    if (kind.starts_with("refused")) return to.reply(400, error_body(*fault, 400));
    if (kind == "unavailable") return to.reply(503, "fault " + fault->name);
    if (kind == "page") return to.reply(200, "<html>fault " + fault->name + "</html>");
    if (kind == "stranger") {
      schedule_.stay_alone(kProbesTakeMs);  // it is seen after the last probe, if none of them fails
      return to.reply(200, Engine::stranger());
    }
    if (kind == "truncated") {
      to.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"fault\":");
      throw Gone();
    }
    if (kind == "reset") {
      to.send("HTTP/1.1 200 OK\r\n");  // a client may try again without a word what had no answer at all
      break_off(to);
    }
    Engine::Server::handle(to, request);
  }

 protected:
  void before_token(const Connection& to, const typename Engine::Generation& generation) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(token_ms_));
    to.check_alive();
    const Fault* fault = schedule_.take_handed_on();
    if (!fault && generation.drawn == (always_ ? 0 : kMiddle)) fault = take("decode");
    if (!fault) return;
    note(*fault, generation.name, "");
    end_or_stop(*fault);
    if (fault->kind.starts_with("status")) to.event(error_body(*fault, 500));
    if (fault->kind == "truncated") to.send("400\r\ndata: {\"choices\": [{\"ind");
    if (fault->kind == "wrong_json") to.event("fault " + fault->name + ": {\"choices\": [}");
    if (fault->kind == "reset") break_off(to);
    if (fault->kind == "no_done") to.send("0\r\n\r\n");
    if (fault->kind == "endless") send_endless(to);
    Engine::send_wrong(to, generation, *fault);
    if (fault->kind != "stop") throw Gone();
  }

  void before_sending(const typename Engine::Generation& generation) override {
    if (generation.is_over())
      schedule_.note("samples.jsonl", {{"request", generation.name}, {"tokens", generation.tokens}});
  }

 private:
  const Fault* take(const std::string& point) {
    if (!always_) return schedule_.take(point);
    return always_->point == point ? &*always_ : nullptr;
  }

  void note(const Fault& fault, const std::string& request, const std::string& path) {
    schedule_.note("faults.jsonl", {{"at", timestamp()},
                                    {"name", fault.name},
                                    {"point", fault.point},
                                    {"kind", fault.kind},
                                    {"port", port_},
                                    {"pid", ::getpid()},
                                    {"path", path},
                                    {"request", request}});
    if (!always_) schedule_.noted(fault);
    std::printf("fault %s\n", fault.name.c_str());
    std::fflush(stdout);
  }

  static void end_or_stop(const Fault& fault) {
    if (fault.kind == "kill" || fault.kind == "late_kill") ::kill(::getpid(), SIGKILL);
    if (fault.kind == "stop") continue_later();
    if (fault.kind == "stop" || fault.kind == "hang") ::kill(::getpid(), SIGSTOP);
  }

  static void continue_later() {
    const std::string script =
        "sleep " + std::string(variable("HEXAD_FAULTS_STOP_S")) + "; kill -CONT " + std::to_string(::getpid());
    std::string shell = "/bin/sh", flag = "-c", text = script;
    char* arguments[] = {shell.data(), flag.data(), text.data(), nullptr};
    pid_t pid = 0;
    ::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, arguments, environ);
  }

  // Does what is asked, of a control call; its answer goes nowhere.
  void act_silently(const Request& request, const std::string& point) {
    if (point == "prefill") return;
    try {
      Engine::Server::handle(Connection(-1), request);
    } catch (const Gone&) {
    }
  }

  [[noreturn]] static void break_off(const Connection& to) {
    to.reset_at_close();
    throw Gone();
  }

  // More than a client keeps of one event.
  static void send_endless(const Connection& to) {
    const std::string part = "100000\r\n" + std::string(size_t{1} << 20, 'x') + "\r\n";
    to.send("6\r\ndata: \r\n");
    for (int mib = 0; mib < 80; ++mib) to.send(part);
  }

  void fill_disk(const Fault& fault, const Begun& begun) {
    schedule_.stay_alone(kAloneForMs);
    note(fault, "", "");
    FullDisk disk(folder_of(fault.point));
    wait_until_met(begun, [&] {
      disk.fill();
      schedule_.stay_alone(kAloneForMs);
    });
  }

  Schedule& schedule_;
  const std::optional<Fault> always_ = always();
  int port_, token_ms_;
};

template <typename Engine>
int run(int argc, char** argv) {
  ::signal(SIGCHLD, SIG_IGN);
  Schedule schedule(variable("HEXAD_FAULTS"));
  const typename Engine::Options options = Engine::read_options(argc, argv);
  FaultyServer<Engine> server(schedule, options);
  server.launch();
  for (const char* point : {"save", "checkpoint"}) std::thread([&server, point] { server.watch(point); }).detach();
  hexad::bridge::stand_in::serve(options.port,
                                 [&](const Connection& to, const Request& request) { server.handle(to, request); });
}

}  // namespace faults
