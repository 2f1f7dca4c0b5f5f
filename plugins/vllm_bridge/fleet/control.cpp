#include "plugins/vllm_bridge/fleet/control.hpp"

#include <future>

namespace hexad::vllm {

std::vector<Target> Control::up() {
  return loop_.run([&] {
    std::vector<Target> targets;
    for (const auto& server : fleet_.servers()) {
      if (!server->up()) continue;
      targets.push_back({server->index, server->incarnation, server->url, server->api_key, server->label(),
                         server->dev_mode, server->sleep_mode, server->can.cache_salt});
    }
    return targets;
  });
}

std::vector<Answer> Control::post(const std::vector<Target>& targets, const std::string& path, const std::string& body,
                                  Seconds deadline) {
  std::vector<std::future<Answer>> futures;
  for (const Target& target : targets) {
    auto promise = std::make_shared<std::promise<Answer>>();
    futures.push_back(promise->get_future());
    loop_.post([this, promise, target, path, body, deadline] {
      HttpRequest request;
      request.method = "POST", request.url = target.url + path, request.body = body;
      request.api_key = target.api_key;
      request.timeout = std::chrono::ceil<Milliseconds>(deadline);
      ask(fleet_.transfers(), std::move(request), [promise](const Answer& answer) { promise->set_value(answer); });
    });
  }
  std::vector<Answer> answers;
  for (auto& future : futures) answers.push_back(future.get());
  return answers;
}

void Control::post_or_fail(std::vector<Target>& targets, const std::string& path, const std::string& body,
                           Seconds deadline) {
  const std::vector<Answer> answers = post(targets, path, body, deadline);
  std::vector<Target> left;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (answers[i].ok()) {
      left.push_back(targets[i]);
      continue;
    }
    const std::string why = "failed at " + path.substr(0, path.find('?')) + ": " + answers[i].trouble();
    loop_.run([&] { fleet_.fail(targets[i].index, why); });
  }
  targets = std::move(left);
}

}  // namespace hexad::vllm
