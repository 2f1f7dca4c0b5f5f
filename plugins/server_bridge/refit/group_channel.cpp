#include "plugins/server_bridge/refit/group_channel.hpp"

#include <fmt/format.h>

#include <exception>
#include <numeric>
#include <utility>

namespace hexad::bridge {
namespace {

bool refused(const std::shared_future<Answer>& answer, Milliseconds patience) {
  return answer.wait_for(patience) == std::future_status::ready && !answer.get().ok();
}

std::string words_of(const Answer& answer) {
  return (answer.result.complete ? "the server says " : "no answer came from the server: ") + answer.trouble();
}

// "model.norm.weight", "model.a and 26 weights more up to model.z".
std::string names_of(refit::Slices weights) {
  std::string text = weights.front()->name;
  if (weights.size() > 1)
    text += fmt::format(" and {} weights more up to {}", weights.size() - 1, weights.back()->name);
  return text;
}

}  // namespace

refit::GiveUp GroupChannel::give_up_when(std::shared_future<Answer> answer, const char* what) const {
  const auto end = Clock::now() + std::chrono::ceil<Milliseconds>(deadline_);
  return [answer = std::move(answer), end, what, deadline = deadline_]() -> std::string {
    if (refused(answer, Milliseconds(0))) return words_of(answer.get());
    return Clock::now() > end ? fmt::format("its workers did not {} in {:.0f} s", what, deadline.count()) : "";
  };
}

std::unique_ptr<refit::Sender> GroupChannel::meet(
    const Target& target, const Post& ask,
    const std::function<std::unique_ptr<refit::Sender>(const refit::GiveUp&)>& make) {
  std::vector<std::future<Answer>> answers = control_.begin_post(
      {target}, ask.path, [&](const Target&) { return ask.body; }, deadline_);
  const std::shared_future<Answer> answer = answers[0].share();
  std::unique_ptr<refit::Sender> sender = make(give_up_when(answer, "join"));
  if (!answer.get().ok()) sdk::fail(HEXAD_UNAVAILABLE, "%s: %s", ask.path.c_str(), answer.get().trouble().c_str());
  return sender;
}

void GroupChannel::check_reaches(const Target& target, const std::string& address, const char* key) {
  const auto here = [](const std::string& text) {
    return text.find("127.0.0.1") != std::string::npos || text.find("localhost") != std::string::npos;
  };
  if (!here(address) || here(target.url)) return;
  sdk::fail(HEXAD_INVALID_ARGUMENT,
            "%s: got %s, where a server on another host cannot meet this one: wanted an address of this host that it "
            "reaches",
            key, address.c_str());
}

void GroupChannel::lose(const Target& target, const std::string& why) {
  leave(target);
  members_.erase(target.index);
  control_.spoil(target, "did not take " + why);
}

void GroupChannel::connect(const sdk::Call& call, int64_t, std::vector<Target>& targets) {
  std::erase_if(targets, [&](const Target& target) {
    const auto known = members_.find(target.index);
    if (known != members_.end() && known->second.incarnation == target.incarnation) return false;
    if (known != members_.end()) leave(target), members_.erase(known);
    try {
      members_[target.index] = {target.incarnation, join(call, target)};
      return false;
    } catch (const std::exception& error) {
      lose(target, std::string("weights: ") + error.what());
      return true;
    }
  });
}

void GroupChannel::send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) {
  const auto slices = refit::in_order(bucket);
  if (slices.empty() || targets.empty()) return;
  staging_->reserve(slices, call.device());
  for (size_t begin = 0, count = 0; begin < slices.size(); begin += count) {
    const std::vector<int64_t> sizes = staging_->fill(call, refit::Slices(slices).subspan(begin));
    count = sizes.size();
    const auto bytes = static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
    broadcast(bytes, refit::Slices(slices).subspan(begin, count), targets);
  }
}

void GroupChannel::broadcast(size_t bytes, refit::Slices weights, std::vector<Target>& targets) {
  std::vector<std::future<Answer>> pending = control_.begin_post(
      targets, update_path(), [&](const Target& target) { return update_body(target, weights); }, deadline_);
  std::vector<refit::GiveUp> give_up;
  std::vector<std::shared_future<Answer>> answers;
  for (auto& answer : pending) {
    answers.push_back(answer.share());
    give_up.push_back(give_up_when(answers.back(), "take part"));
  }
  std::vector<std::string> trouble(targets.size());
  const auto each = [&](const auto& step) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!trouble[i].empty()) continue;
      try {
        step(i, *members_.at(targets[i].index).sender);
      } catch (const std::exception& error) {
        trouble[i] = error.what();
        // A message that broke off says less than the server, which may be about to.
        const bool said = trouble[i].find(" the server") != std::string::npos;
        if (!said && refused(answers[i], Milliseconds(1000))) trouble[i] += "; " + words_of(answers[i].get());
      }
    }
  };
  each([&](size_t i, refit::Sender& sender) { sender.broadcast(staging_->address(), bytes, give_up[i]); });
  each([&](size_t i, refit::Sender& sender) { sender.wait(give_up[i]); });
  each([&](size_t i, refit::Sender&) {
    if (!answers[i].get().ok()) trouble[i] = update_path() + ": " + answers[i].get().trouble();
  });
  std::vector<Target> left;
  for (size_t i = 0; i < targets.size(); ++i)
    trouble[i].empty() ? left.push_back(targets[i]) : lose(targets[i], names_of(weights) + ": " + trouble[i]);
  targets = std::move(left);
}

}  // namespace hexad::bridge
