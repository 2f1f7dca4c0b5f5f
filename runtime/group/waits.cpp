#include "runtime/group/waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>

namespace hexad::runtime {
namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;

constexpr const char* kQuestions = "waits/questions";
constexpr milliseconds kStoreLimit{1000};  // for the store itself
constexpr milliseconds kAfterLoss{100};
// Separates the group of an answer from its text.
constexpr char kMark = '\n';

std::string answer_key(int64_t question, int32_t rank) { return fmt::format("waits/{}/{}", question, rank); }

double seconds_since(steady_clock::time_point when) {
  return std::chrono::duration<double>(steady_clock::now() - when).count();
}

// How long the others may take to answer, who look at the store every `pause`.
milliseconds answer_limit(milliseconds pause) { return std::max(10 * pause, milliseconds(1500)); }

std::string ask(c10d::Store& store, milliseconds pause, const std::string& group, const std::vector<int32_t>& ranks) {
  const int64_t question = store.add(kQuestions, 1);
  const auto deadline = steady_clock::now() + answer_limit(pause);
  std::map<int32_t, std::string> answers;
  while (answers.size() < ranks.size() && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(pause / 2);
    for (const int32_t rank : ranks) {
      const std::string key = answer_key(question, rank);
      if (answers.count(rank) || !store.check({key})) continue;
      const std::vector<uint8_t> answer = store.get(key);
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

// On a thread of its own: the store of a process that was stopped blocks whoever asks it, without a deadline.
std::string ask_in_time(c10::intrusive_ptr<c10d::Store> store, milliseconds pause, const std::string& group,
                        const std::vector<int32_t>& ranks) {
  const std::string no_store = "missing: rank 0 (the store that it keeps does not answer: it ended, or was stopped)";
  try {
    auto promise = std::make_shared<std::promise<std::string>>();
    std::future<std::string> answer = promise->get_future();
    std::thread([=] {
      try {
        promise->set_value(ask(*store, pause, group, ranks));
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    }).detach();
    const bool came = answer.wait_for(answer_limit(pause) + kStoreLimit) == std::future_status::ready;
    return came ? answer.get() : no_store;
  } catch (const std::exception&) {
    return no_store;
  }
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

std::string Waits::missing(const std::string& what, const std::string& group, const std::vector<int32_t>& ranks) {
  {
    const std::lock_guard lock(mutex_);
    if (!loss_.empty()) return "after " + loss_;
    loss_ = what;  // others need not ask while this one does
  }
  const std::string found = ask_in_time(store_, pause_, group, ranks);
  const std::lock_guard lock(mutex_);
  loss_ = what + "; " + found;
  return found;
}

milliseconds Waits::patience(milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  return loss_.empty() ? timeout : kAfterLoss;
}

}  // namespace hexad::runtime
