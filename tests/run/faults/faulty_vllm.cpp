// faulty_vllm: the stand-in for a vLLM server, which fails as the schedule in the folder $HEXAD_FAULTS says. Points:
//   launch                                  when it has been started
//   health, version, api, is_paused         what a server is asked before it gets requests
//   prefill, decode                         of a request, before its first token, and in the middle
//   pause, reload, reset, resume            of an update of the weights
//   save, checkpoint                        while the run writes weights for the servers, or a checkpoint
// Kinds: kill, late_kill (when it has done what it was asked), stop (and continued later), hang (stopped for good),
// status (500), truncated, reset, wrong_json, wrong_count, disk_full.
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "plugins/vllm_bridge/stand_in/server.hpp"
#include "tests/run/faults/disk.hpp"
#include "tests/run/faults/schedule.hpp"

extern char** environ;

namespace faults {
namespace {

using hexad::vllm::stand_in::Connection;
using hexad::vllm::stand_in::Generation;
using hexad::vllm::stand_in::Gone;
using hexad::vllm::stand_in::Options;
using hexad::vllm::stand_in::Request;
using hexad::vllm::stand_in::Server;

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

constexpr int64_t kMiddle = 5;         // tokens
constexpr int64_t kAloneForMs = 1000;  // and again, while a disk is full

const std::map<std::string, std::string> kPointOfPath = {{"/health", "health"},
                                                         {"/version", "version"},
                                                         {"/is_paused", "is_paused"},
                                                         {"/pause", "pause"},
                                                         {"/resume", "resume"},
                                                         {"/collective_rpc", "reload"},
                                                         {"/reset_prefix_cache", "reset"},
                                                         {"/inference/v1/generate", ""}};

std::string point_of(const Request& request) {
  const auto found = kPointOfPath.find(request.path.substr(0, request.path.find('?')));
  if (found == kPointOfPath.end()) return "other";
  if (!found->second.empty()) return found->second;
  return request.body == "{}" ? "api" : "prefill";
}

class FaultyServer : public Server {
 public:
  FaultyServer(Schedule& schedule, const Options& options)
      : Server(options.model_dir, options.api_key),
        schedule_(schedule),
        port_(options.port),
        token_ms_(std::atoi(variable("HEXAD_FAULTS_TOKEN_MS"))) {}

  void launch() {
    const Fault* fault = schedule_.take("launch");
    if (!fault) return;
    note(*fault, "");
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
        note(*fault, "");
        end_or_stop(*fault);
      } else {
        schedule_.hand_on(*fault);
      }
    }
  }

  void handle(const Connection& to, const Request& request) override {
    const std::string point = point_of(request);
    to.check_alive();
    const Fault* fault = schedule_.take(point);
    if (!fault) return Server::handle(to, request);
    note(*fault, point == "prefill" ? Json::parse(request.body).value("request_id", "") : "");
    if (fault->kind == "late_kill" || fault->kind == "truncated") act_silently(request, point);
    end_or_stop(*fault);
    if (fault->kind == "status") return to.reply(500, Json{{"error", {{"message", "fault " + fault->name}}}}.dump());
    if (fault->kind == "truncated") {
      to.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"fault\":");
      throw Gone();
    }
    if (fault->kind == "reset") {
      to.send("HTTP/1.1 200 OK\r\n");  // a client may try again without a word what had no answer at all
      break_off(to);
    }
    Server::handle(to, request);
  }

 protected:
  void before_token(const Connection& to, const Generation& generation) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(token_ms_));
    to.check_alive();
    const Fault* fault = schedule_.take_handed_on();
    if (!fault && generation.drawn == kMiddle) fault = schedule_.take("decode");
    if (!fault) return;
    note(*fault, generation.name);
    end_or_stop(*fault);
    if (fault->kind == "status") to.event(Json{{"error", {{"message", "fault " + fault->name}}}}.dump());
    if (fault->kind == "truncated") to.send("400\r\ndata: {\"choices\": [{\"ind");
    if (fault->kind == "wrong_json") to.event("fault " + fault->name + ": {\"choices\": [}");
    if (fault->kind == "wrong_count") to.event(wrong_count(*fault));
    if (fault->kind == "reset") break_off(to);
    if (fault->kind != "stop") throw Gone();
  }

  void before_sending(const Generation& generation) override {
    if (generation.is_over())
      schedule_.note("samples.jsonl", {{"request", generation.name}, {"tokens", generation.tokens}});
  }

 private:
  void note(const Fault& fault, const std::string& request) {
    schedule_.note("faults.jsonl", {{"at", timestamp()},
                                    {"name", fault.name},
                                    {"point", fault.point},
                                    {"kind", fault.kind},
                                    {"port", port_},
                                    {"pid", ::getpid()},
                                    {"request", request}});
    schedule_.noted(fault);
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
      Server::handle(Connection(-1), request);
    } catch (const Gone&) {
    }
  }

  [[noreturn]] static void break_off(const Connection& to) {
    to.reset_at_close();
    throw Gone();
  }

  static std::string wrong_count(const Fault& fault) {
    const Json choice = {{"index", 0}, {"token_ids", {3, 4}}, {"logprobs", {{"content", {{{"logprob", -1.0}}}}}}};
    return Json{{"request_id", "fault " + fault.name}, {"choices", {choice}}}.dump();
  }

  void fill_disk(const Fault& fault, const Begun& begun) {
    schedule_.stay_alone(kAloneForMs);
    note(fault, "");
    FullDisk disk(folder_of(fault.point));
    wait_until_met(begun, [&] {
      disk.fill();
      schedule_.stay_alone(kAloneForMs);
    });
  }

  Schedule& schedule_;
  int port_, token_ms_;
};

int run(int argc, char** argv) {
  ::signal(SIGCHLD, SIG_IGN);
  Schedule schedule(variable("HEXAD_FAULTS"));
  const Options options = hexad::vllm::stand_in::read_options(argc, argv);
  FaultyServer server(schedule, options);
  server.launch();
  for (const char* point : {"save", "checkpoint"}) std::thread([&server, point] { server.watch(point); }).detach();
  hexad::vllm::stand_in::serve(options.port,
                               [&](const Connection& to, const Request& request) { server.handle(to, request); });
}

}  // namespace
}  // namespace faults

int main(int argc, char** argv) {
  try {
    return faults::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "faulty_vllm: %s\n", error.what());
    return 1;
  }
}
