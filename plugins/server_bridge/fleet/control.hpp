// Calls to servers that a host's call waits for: pause, weights, sleep.
#pragma once
#include <hexad/services.hpp>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "plugins/server_bridge/fleet/fleet.hpp"

namespace hexad::bridge {

// A server as it was when it was looked at.
struct Target {
  int index = 0;
  int64_t incarnation = 0;
  std::string url, api_key, label;
  Facts facts;
};

// What is asked of each.
using BodyOf = std::function<std::string(const Target&)>;

class Control {
 public:
  Control(EventLoop& loop, Fleet& fleet) : loop_(loop), fleet_(fleet) {}

  std::vector<Target> up();             // those that take requests now
  std::vector<Target> takes_weights();  // those, and those that wait for weights
  bool any_on_its_first_start();        // a server has not answered yet, and was never there

  // POSTs to all at once and waits for every answer, none longer than `deadline`.
  std::vector<Answer> post(const std::vector<Target>& targets, const Post& post, Seconds deadline);
  // The same; a server that does not answer with 200 has failed, and leaves the targets.
  void post_or_fail(std::vector<Target>& targets, const Post& post, Seconds deadline);

  // Of an update of weights, each target with a body of its own: one that fails may hold some of them.
  std::vector<std::future<Answer>> begin_post(const std::vector<Target>& targets, const std::string& path,
                                              const BodyOf& body, Seconds deadline);
  void end_update(std::vector<Target>& targets, const std::string& path, std::vector<std::future<Answer>> answers);
  void update(std::vector<Target>& targets, const std::string& path, const BodyOf& body, Seconds deadline);
  void update(std::vector<Target>& targets, const Post& post, Seconds deadline);
  void spoil(const Target& target, const std::string& why);

  Answer get(const Target& target, const std::string& path, Seconds deadline);

 private:
  std::vector<Target> servers(bool with_waiting);
  struct Call {
    HttpRequest request;
    Clock::time_point deadline;
    std::promise<Answer> answer;
  };
  std::vector<std::future<Answer>> begin_post(const std::vector<Target>& targets, const Post& post, Seconds deadline);
  void start(const std::shared_ptr<Call>& call);
  std::future<Answer> begin(const Target& target, HttpRequest request, Seconds deadline);
  using OnFailure = void (Fleet::*)(int, const std::string&);
  void keep_good(std::vector<Target>& targets, const std::string& path, std::vector<std::future<Answer>> answers,
                 OnFailure on_failure);

  EventLoop& loop_;
  Fleet& fleet_;
};

}  // namespace hexad::bridge
