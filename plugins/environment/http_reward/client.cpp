#include "client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "protocol.hpp"

namespace http_reward {
namespace {

constexpr double kLongestPause = 30;  // seconds
constexpr Clock::duration kLookEvery = std::chrono::milliseconds(50);
constexpr int64_t kGivenUpAtOnce = 8;

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

struct Job {
  std::vector<int64_t> samples;
  int64_t attempt = 0;
  Clock::time_point not_before{};  // its next attempt
  std::string why{};               // the last one failed
};

struct Running {
  Job job;
  std::unique_ptr<Transfer> transfer;
};

}  // namespace

struct Client::State {
  State() : multi(curl_multi_init()) {
    if (!multi) throw std::runtime_error("curl_multi_init failed");
  }
  ~State() {
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
  }
  CURLM* multi;
  curl_slist* headers = nullptr;
};

Client::Client(const Settings& settings) : settings_(settings) {
  start_curl();
  state_ = std::make_unique<State>();
  for (const std::string& header : settings.headers) {
    curl_slist* const longer = curl_slist_append(state_->headers, header.c_str());
    if (!longer) throw std::runtime_error("curl_slist_append failed");
    state_->headers = longer;
  }
  curl_multi_setopt(state_->multi, CURLMOPT_MAXCONNECTS, static_cast<long>(settings.max_concurrency));
}

Client::~Client() = default;

// One run of a client.
class Client::Round {
 public:
  Round(const Settings& settings, const State& state, int64_t samples, const Deadline& deadline,
        const Exchange& exchange)
      : settings_(settings), state_(state), deadline_(deadline), exchange_(exchange) {
    for (int64_t i = 0; i < samples; ++i) {
      if (jobs_.empty() || static_cast<int64_t>(jobs_.back().samples.size()) == settings.batch_size)
        jobs_.emplace_back();
      jobs_.back().samples.push_back(i);
    }
  }
  ~Round() {
    for (const Running& running : running_) curl_multi_remove_handle(state_.multi, running.transfer->easy());
  }

  bool over() const { return jobs_.empty() && running_.empty(); }

  void start_due() {
    const Clock::time_point now = Clock::now();
    if (now >= deadline_.at) return give_up_waiting();
    std::list<Job> due;  // apart, for what cannot be started comes back into jobs_
    const bool fresh = may_start_fresh();
    for (auto job = jobs_.begin(); job != jobs_.end() && (job->attempt > 0 || (fresh && room(due.size())));) {
      const auto next = std::next(job);
      if (job->not_before <= now && room(due.size())) due.splice(due.end(), jobs_, job);
      job = next;
    }
    for (Job& job : due) start(std::move(job));
  }

  void finish_ended() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(state_.multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const auto ended = std::ranges::find(running_, message->easy_handle,
                                           [](const Running& running) { return running.transfer->easy(); });
      if (ended != running_.end()) finish(ended, ended->transfer->outcome(code));
    }
    for (auto running = running_.begin(); running != running_.end();) {
      const auto overdue = running++;
      if (overdue->transfer->overdue()) finish(overdue, overdue->transfer->timed_out());
    }
  }

  // For something to happen.
  void wait() const {
    Clock::duration longest = kLookEvery;
    const bool fresh = may_start_fresh();
    for (auto job = jobs_.begin(); room(0) && job != jobs_.end() && longest > Clock::duration::zero(); ++job) {
      if (job->attempt > 0 || fresh) longest = std::min(longest, job->not_before - Clock::now());
    }
    const auto ms = std::max<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(longest).count(), 0);
    if (curl_multi_poll(state_.multi, nullptr, 0, static_cast<int>(ms), nullptr) != CURLM_OK)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  // While nothing worked yet, samples that failed are tried again before new ones are.
  bool may_start_fresh() const {
    const auto first_fresh = std::ranges::find(jobs_, 0, &Job::attempt);
    return taken_ > 0 || std::distance(jobs_.begin(), first_fresh) < kGivenUpAtOnce;
  }
  bool room(size_t more) const { return static_cast<int64_t>(running_.size() + more) < settings_.max_concurrency; }

  void start(Job job) {
    const Clock::duration timeout = std::min(seconds(settings_.timeout_s), deadline_.at - Clock::now());
    auto transfer = std::make_unique<Transfer>(settings_, state_.headers, exchange_.body(job.samples), timeout);
    std::string problem = transfer->problem();
    if (problem.empty()) {
      const CURLMcode code = curl_multi_add_handle(state_.multi, transfer->easy());
      if (code != CURLM_OK) problem = fmt::format("cannot be asked: {}", curl_multi_strerror(code));
    }
    if (!problem.empty()) return try_again(job, {problem});
    running_.push_back({std::move(job), std::move(transfer)});
  }

  void finish(std::list<Running>::iterator ended, Outcome outcome) {
    const Running running = std::move(*ended);
    running_.erase(ended);
    curl_multi_remove_handle(state_.multi, running.transfer->easy());
    if (outcome.failed.empty()) outcome = take(running);
    if (!outcome.failed.empty()) return try_again(running.job, outcome);
    taken_ += static_cast<int64_t>(running.job.samples.size());
  }

  Outcome take(const Running& running) const {
    const std::string& reply = running.transfer->reply();
    try {
      exchange_.take(running.job.samples, reply);
      return {};
    } catch (const Unusable& error) {
      if (redacted(reply, settings_.secrets) != reply)
        return {"gave no reward, and repeats a secret in what it answers, which is not shown"};
      return {fmt::format("gave no reward: {}", error.what())};
    }
  }

  double pause_after(const Job& job, const Outcome& outcome) {
    const auto doubled = static_cast<double>(int64_t{1} << std::min<int64_t>(job.attempt, 20));
    const double jitter = std::uniform_real_distribution<double>(0.5, 1)(random_);
    return std::min(std::max(settings_.backoff_s * doubled * jitter, outcome.retry_after_s), kLongestPause);
  }

  std::string no_time() const { return fmt::format(", and {} leaves no time to ask again", deadline_.key); }

  void try_again(const Job& job, const Outcome& outcome) {
    const bool may = outcome.again && job.attempt < settings_.retries;
    const Clock::time_point at = Clock::now() + seconds(pause_after(job, outcome));
    const bool last = !may || at >= deadline_.at;
    std::string why = redacted(fmt::format("{} {}", settings_.shown_url, outcome.failed), settings_.secrets);
    if (may && last) why += no_time();
    exchange_.log(fmt::format("{} (attempt {} of {})", why, job.attempt + 1, settings_.retries + 1), last);
    if (last) return give_up(job, why);
    // One by one: a bad one of a batch is not the others' fault. First, so that a server that never works is soon
    // known.
    for (const int64_t sample : job.samples) jobs_.push_front({{sample}, job.attempt + 1, at, why});
  }

  // Those that no request is under way for.
  void give_up_waiting() {
    size_t unasked = 0;
    for (const Job& job : std::exchange(jobs_, {})) {
      if (job.attempt == 0) unasked += job.samples.size();
      if (job.attempt > 0) exchange_.log(job.why + no_time(), /*last=*/true);
      give_up(job, job.attempt > 0 ? job.why + no_time() : "was not asked");
    }
    if (unasked > 0)
      exchange_.say(
          fmt::format("{}: {} samples were not asked, for {} had passed, and are invalid. Where its answers "
                      "only take long, raise that, or max_concurrency",
                      settings_.shown_url, unasked, deadline_.key));
  }

  void give_up(const Job& job, const std::string& why) {
    for (const int64_t sample : job.samples) exchange_.give_up(sample, why);
    given_up_ += static_cast<int64_t>(job.samples.size());
    if (taken_ > 0 || given_up_ < kGivenUpAtOnce) return;
    for (const Job& left : std::exchange(jobs_, {})) {
      for (const int64_t sample : left.samples) exchange_.give_up(sample, why);
    }
  }

  const Settings& settings_;
  const State& state_;
  const Deadline& deadline_;
  const Exchange& exchange_;
  std::list<Job> jobs_;  // those with failed attempts first
  std::list<Running> running_;
  int64_t taken_ = 0, given_up_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

void Client::run(int64_t samples, const Deadline& deadline, const Exchange& exchange) {
  Round round(settings_, *state_, samples, deadline, exchange);
  while (!round.over() && !exchange.cancelled()) {
    round.start_due();
    int running = 0;
    curl_multi_perform(state_->multi, &running);
    round.finish_ended();
    if (!round.over()) round.wait();
  }
}

}  // namespace http_reward
