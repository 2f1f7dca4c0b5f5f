#include "runtime/waits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hexad::runtime {
namespace {

constexpr const char* kQuestions = "waits/questions";
// Separates the group of an answer from its text.
constexpr char kMark = '\n';

std::string answer_key(int64_t question, int32_t rank) { return fmt::format("waits/{}/{}", question, rank); }

double seconds_since(std::chrono::steady_clock::time_point when) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - when).count();
}

}  // namespace

Waits::Waits(c10::intrusive_ptr<c10d::Store> store, int32_t rank, int32_t world_size)
    : store_(std::move(store)), rank_(rank), pause_(100 + 2 * world_size), thread_([this] { serve(); }) {}

Waits::~Waits() {
  ending_ = true;
  thread_.join();
}

Waits::Scope::Scope(Waits& waits, std::string group, std::string operation) : waits_(waits) {
  const std::lock_guard lock(waits.mutex_);
  id_ = waits.next_++;
  waits.waits_[id_] = {std::move(group), std::move(operation), Clock::now()};
}

Waits::Scope::~Scope() {
  const std::lock_guard lock(waits_.mutex_);
  waits_.waits_.erase(id_);
  waits_.last_end_ = Clock::now();
}

std::string Waits::own_state() {
  const std::lock_guard lock(mutex_);
  if (waits_.empty()) return fmt::format("{}outside of collectives for {:.1f} s", kMark, seconds_since(last_end_));
  const Wait& oldest = waits_.begin()->second;
  return fmt::format("{}{}in {} over {} for {:.1f} s", oldest.group, kMark, oldest.operation, oldest.group,
                     seconds_since(oldest.began));
}

void Waits::serve() {
  int64_t answered = 0;
  while (!ending_) {
    try {
      const int64_t asked = store_->add(kQuestions, 0);
      for (; answered < asked; ++answered) {
        const std::string state = own_state();
        store_->set(answer_key(answered + 1, rank_), std::vector<uint8_t>(state.begin(), state.end()));
      }
    } catch (const std::exception&) {
      return;  // the rank that keeps the store is gone, and nobody can ask
    }
    std::this_thread::sleep_for(pause_);
  }
}

std::string Waits::missing(const std::string& group, const std::vector<int32_t>& ranks) {
  try {
    return ask(group, ranks);
  } catch (const std::exception&) {
    return "missing: rank 0 (the store that it keeps does not answer: it ended, or was stopped)";
  }
}

std::string Waits::ask(const std::string& group, const std::vector<int32_t>& ranks) {
  const int64_t question = store_->add(kQuestions, 1);
  const auto deadline = Clock::now() + std::max(10 * pause_, std::chrono::milliseconds(1500));
  std::map<int32_t, std::string> answers;
  while (answers.size() < ranks.size() && Clock::now() < deadline) {
    std::this_thread::sleep_for(pause_ / 2);
    for (const int32_t rank : ranks) {
      const std::string key = answer_key(question, rank);
      if (answers.count(rank) || !store_->check({key})) continue;
      const std::vector<uint8_t> answer = store_->get(key);
      answers[rank] = std::string(answer.begin(), answer.end());
    }
  }
  std::string missing, elsewhere;
  const auto add = [](std::string& to, const std::string& text) { to += (to.empty() ? "" : ", ") + text; };
  for (const int32_t rank : ranks) {
    const auto found = answers.find(rank);
    if (found == answers.end()) {
      add(missing, fmt::format("rank {} (no answer: it ended, or was stopped)", rank));
      continue;
    }
    const size_t mark = found->second.find(kMark);
    const std::string where = found->second.substr(0, mark), text = found->second.substr(mark + 1);
    if (where.empty()) add(missing, fmt::format("rank {} ({})", rank, text));
    if (!where.empty() && where != group) add(elsewhere, fmt::format("rank {} is {}", rank, text));
  }
  if (missing.empty() && elsewhere.empty()) return "missing: nobody; the network lost a message, or came too late";
  std::string result = missing.empty() ? "" : "missing: " + missing;
  if (!elsewhere.empty()) result += (result.empty() ? "" : "; ") + elsewhere;
  return result;
}

}  // namespace hexad::runtime
