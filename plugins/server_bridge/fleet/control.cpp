#include "plugins/server_bridge/fleet/control.hpp"

#include <algorithm>

namespace hexad::bridge {

std::vector<Target> Control::servers(bool with_waiting) {
  return loop_.run([&] {
    std::vector<Target> targets;
    for (const auto& server : fleet_.servers()) {
      if (!server->up() && !(with_waiting && server->waits_for_weights())) continue;
      targets.push_back(
          {server->index, server->incarnation, server->url, server->api_key, server->label(), server->facts});
    }
    return targets;
  });
}

std::vector<Target> Control::up() { return servers(/*with_waiting=*/false); }
std::vector<Target> Control::takes_weights() { return servers(/*with_waiting=*/true); }

bool Control::any_on_its_first_start() {
  return loop_.run([&] {
    return std::ranges::any_of(fleet_.servers(), [](const auto& server) {
      return server->state == Server::State::starting && !server->was_there;
    });
  });
}

std::future<Answer> Control::begin(const Target& target, HttpRequest request, Seconds deadline) {
  request.url = target.url + request.url;
  request.api_key = target.api_key;
  const auto end = Clock::now() + std::chrono::ceil<Milliseconds>(deadline);
  const auto call = std::make_shared<Call>(Call{std::move(request), end, {}});
  loop_.post([this, call] { start(call); });
  return call->answer.get_future();
}

// On the loop's thread. While this process may open no more files a call waits for one.
void Control::start(const std::shared_ptr<Call>& call) {
  HttpRequest request = call->request;
  request.timeout = std::max(Milliseconds(1), std::chrono::ceil<Milliseconds>(call->deadline - Clock::now()));
  ask(fleet_.transfers(), std::move(request), [this, call](const Answer& answer) {
    if (!answer.result.no_descriptor || Clock::now() + kDescriptorWait >= call->deadline)
      return call->answer.set_value(answer);
    fleet_.wait_for_descriptors();
    loop_.after(kDescriptorWait, [this, call] { start(call); });
  });
}

std::vector<std::future<Answer>> Control::begin_post(const std::vector<Target>& targets, const std::string& path,
                                                     const BodyOf& body, Seconds deadline) {
  std::vector<std::future<Answer>> answers;
  for (const Target& target : targets) {
    HttpRequest request;
    request.method = "POST", request.url = path, request.body = body(target);
    answers.push_back(begin(target, std::move(request), deadline));
  }
  return answers;
}

std::vector<std::future<Answer>> Control::begin_post(const std::vector<Target>& targets, const Post& post,
                                                     Seconds deadline) {
  return begin_post(
      targets, post.path, [&](const Target&) { return post.body; }, deadline);
}

std::vector<Answer> Control::post(const std::vector<Target>& targets, const Post& post, Seconds deadline) {
  std::vector<Answer> answers;
  for (auto& answer : begin_post(targets, post, deadline)) answers.push_back(answer.get());
  return answers;
}

void Control::keep_good(std::vector<Target>& targets, const std::string& path, std::vector<std::future<Answer>> answers,
                        OnFailure on_failure) {
  std::vector<Target> left;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Answer answer = answers[i].get();
    if (answer.ok()) {
      left.push_back(targets[i]);
      continue;
    }
    const std::string why = "failed at " + path.substr(0, path.find('?')) + ": " + answer.trouble();
    loop_.run([&] { (fleet_.*on_failure)(targets[i].index, why); });
  }
  targets = std::move(left);
}

void Control::post_or_fail(std::vector<Target>& targets, const Post& post, Seconds deadline) {
  keep_good(targets, post.path, begin_post(targets, post, deadline), &Fleet::fail);
}

void Control::end_update(std::vector<Target>& targets, const std::string& path,
                         std::vector<std::future<Answer>> answers) {
  keep_good(targets, path, std::move(answers), &Fleet::spoil);
}

void Control::update(std::vector<Target>& targets, const std::string& path, const BodyOf& body, Seconds deadline) {
  end_update(targets, path, begin_post(targets, path, body, deadline));
}

void Control::update(std::vector<Target>& targets, const Post& post, Seconds deadline) {
  end_update(targets, post.path, begin_post(targets, post, deadline));
}

void Control::spoil(const Target& target, const std::string& why) {
  loop_.run([&] { fleet_.spoil(target.index, why); });
}

Answer Control::get(const Target& target, const std::string& path, Seconds deadline) {
  HttpRequest request;
  request.method = "GET", request.url = path;
  return begin(target, std::move(request), deadline).get();
}

}  // namespace hexad::bridge
