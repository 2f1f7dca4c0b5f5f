#include "core/cluster/process/worker_group.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <span>

#include "core/cluster/worker/worker.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"

namespace hexad::cluster {
namespace {

constexpr int kPollMs = 200;
constexpr int kSoonMs = 5;
// How long the peers of a lost rank may take to say what they miss it for.
constexpr double kPeersReportS = 3;
// A rank that its peers miss and that gave no sign of life for so long (three heartbeats) is the one.
constexpr double kNoLifeS = 3;
// How long a cancelled call may take to come back; longer where its ranks are to save a step, as a pass of a generator
// ends before it looks up.
constexpr double kCancelPatienceS = 5, kCancelAndSavePatienceS = 15;

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

std::string log_tail(const std::string& path) {
  std::vector<std::string> lines;
  try {
    InputFile in(path);
    for (std::string line; std::getline(in, line);) {
      lines.push_back(line);
      if (lines.size() > 5) lines.erase(lines.begin());
    }
  } catch (const Error&) {  // what it is read for matters more
  }
  std::string tail;
  for (const std::string& line : lines) tail += "\n    " + line;
  return tail;
}

}  // namespace

WorkerGroup::WorkerGroup(Spawner* spawner, WorkerGroupOptions options)
    : spawner_(spawner),
      options_(std::move(options)),
      keys_(make_keys()),
      socket_(Socket::listen(options_.launch && !options_.launch->one_host() ? "0.0.0.0" : "127.0.0.1", keys_)),
      workers_(options_.world_size),
      called_{0, options_.world_size} {
  try {
    std::optional<Meeting> meeting;
    if (options_.launch) meeting.emplace(*options_.launch, options_.meeting_dir, socket_.endpoint(), keys_.public_key);
    for (int rank = 0; rank < size(); ++rank) start_worker(rank);
    await([](const Worker& worker) { return worker.greeted; }, options_.start_timeout_s);
    socket_.refuse_newcomers();
    for (Worker& worker : workers_) worker.answered = true;  // nothing is asked of them
  } catch (...) {
    stop();
    throw;
  }
}

WorkerGroup::~WorkerGroup() { stop(); }

std::string WorkerGroup::address() const {
  std::string address = "127.0.0.1";
  for (const Worker& worker : workers_) {
    const bool knows = worker.host != workers_[0].host || address == "127.0.0.1";
    if (!worker.reached.empty() && knows) address = worker.reached;
  }
  return address;
}

void WorkerGroup::start_worker(int rank) {
  Worker& worker = workers_[rank];
  worker.call_began = worker.last_heard = worker.last_progress = Clock::now();
  if (options_.launch && rank > 0) return;
  Bootstrap bootstrap;
  bootstrap.endpoint = "tcp://127.0.0.1" + socket_.endpoint().substr(socket_.endpoint().rfind(':'));
  bootstrap.server_key = keys_.public_key, bootstrap.rank = rank;
  if (!spawner_) {
    in_process_ = std::thread([bootstrap] { run_worker(bootstrap, /*own_process=*/false); });
    return;
  }
  const std::string log = options_.log_dir.empty() ? "" : fmt::format("{}/worker-{}.log", options_.log_dir, rank);
  // OpenMP threads that spin at every barrier stop each other wherever ranks (or strangers) share the cores: measured
  // four to a hundred times slower steps on two busy cores.
  std::map<std::string, std::string> variables;
  if (!std::getenv("OMP_WAIT_POLICY")) variables["OMP_WAIT_POLICY"] = "PASSIVE";
  worker.is_child = true;
  worker.pid = spawner_->spawn({{options_.program, "worker"}, variables, to_text(bootstrap), log});
}

std::vector<Message> WorkerGroup::call_raw(RankRange ranks, const std::function<Message(int rank)>& make,
                                           bool may_be_cancelled) {
  if (broken_ || stopped_)
    fail(ErrorKind::worker, "cannot call '{}': the workers have ended", make(ranks.first).command);
  if (std::ranges::any_of(workers_, [](const Worker& worker) { return worker.failure.has_value(); })) throw_failure();
  called_ = ranks;
  for (int rank = ranks.first; rank < ranks.end(); ++rank) {
    if (workers_[rank].is_stuck) lost(rank, "did not come back in time after it was cancelled");
  }
  for (int rank = ranks.first; rank < ranks.end(); ++rank) {
    Message message = make(rank);
    Worker& worker = workers_[rank];
    worker.answered = false;
    worker.last_call = message.command;
    worker.inside.clear();
    worker.call_began = worker.last_progress = Clock::now();
    send(rank, std::move(message), /*posted=*/false);
  }
  await([](const Worker& worker) { return worker.answered; }, options_.call_timeout_s, may_be_cancelled);
  throw_failure();
  std::vector<Message> answers;
  for (int rank = ranks.first; rank < ranks.end(); ++rank) {
    answers.push_back(std::move(workers_[rank].answer));
  }
  return answers;
}

void WorkerGroup::post_raw(RankRange ranks, const std::function<Message(int rank)>& make) {
  if (broken_ || stopped_)
    fail(ErrorKind::worker, "cannot post '{}': the workers have ended", make(ranks.first).command);
  for (int rank = ranks.first; rank < ranks.end(); ++rank) send(rank, make(rank), /*posted=*/true);
}

int WorkerGroup::pause_ms() { return meanwhile_ && meanwhile_() ? kSoonMs : kPollMs; }

void WorkerGroup::await(const std::function<bool(const Worker&)>& done, double timeout_s, bool may_be_cancelled) {
  while (!std::ranges::all_of(workers_, done)) {
    // All that has arrived is read before anyone counts as silent: this process may have been busy for long.
    for (bool more = receive_one(pause_ms()); more;) more = receive_one(0);
    check_exits();
    // One rank's failure is everyone's: its peers may be waiting for it inside a collective, and never answer.
    throw_failure();
    end_if_interrupted(may_be_cancelled);
    check_silence(done, timeout_s);
  }
}

void WorkerGroup::end_if_interrupted(bool may_be_cancelled) {
  if (!options_.interrupted || *options_.interrupted == 0) return;
  if (!*options_.has_trained) {
    if (!spawner_ && !workers_[0].greeted) return;  // its thread has to hear that it ends
    broken_ = true;
    throw Interrupted("interrupted before the first step");
  }
  if (!may_be_cancelled) return;
  const auto waits = [](const Worker& worker) { return !worker.answered; };
  const double patience_s = *options_.has_unsaved ? kCancelAndSavePatienceS : kCancelPatienceS;
  for (const auto began = Clock::now(); std::ranges::any_of(workers_, waits) && seconds_since(began) < patience_s;
       receive_one(kPollMs)) {
    check_exits();
    for (int rank = called_.first; rank < called_.end(); ++rank)  // again, as it may pass the command that it cancels
      if (waits(workers_[rank])) socket_.send(protocol::to_message(protocol::Cancel{}), std::to_string(rank));
  }
  for (Worker& worker : workers_) worker.is_stuck = !std::exchange(worker.answered, true), worker.answer = {};
  throw Interrupted(fmt::format("interrupted: '{}' is given up", workers_[called_.first].last_call));
}

bool WorkerGroup::wait_until(const std::function<bool()>& done, double timeout_s) {
  const auto began = Clock::now();
  while (true) {
    const int pause = pause_ms();
    if (done()) return true;
    if (broken_ || stopped_) fail(ErrorKind::worker, "cannot wait: the workers have ended");
    const double left = timeout_s - seconds_since(began);
    if (left <= 0) return false;
    const int slice = static_cast<int>(std::clamp(1000 * left, 1.0, 1.0 * pause));
    for (bool more = receive_one(slice); more; more = receive_one(0)) {
    }
    check_exits();
    throw_failure();
    check_silence([](const Worker&) { return false; }, std::numeric_limits<double>::infinity());
  }
}

void WorkerGroup::check_silence(const std::function<bool(const Worker&)>& done, double timeout_s) {
  const auto silence = [&](const Worker& worker) {
    return done(worker) ? -1 : seconds_since(std::max(worker.last_heard, worker.call_began));
  };
  // Ranks that nobody asked may be busy all the time: what they finish does not help those that were called.
  const auto called =
      std::span(workers_).subspan(static_cast<size_t>(called_.first), static_cast<size_t>(called_.count));
  const auto progress = std::ranges::max_element(called, {}, &Worker::last_progress)->last_progress;
  // Whoever was silent for longest is the likeliest cause; the others may be waiting for it.
  const auto worst = std::ranges::max_element(workers_, {}, silence);
  const int rank = static_cast<int>(worst - workers_.begin());
  const double silent_s = silence(*worst);
  if (worst->greeted && silent_s > options_.heartbeat_timeout_s)
    lost(rank, fmt::format("gave no sign of life for {:.0f} s", silent_s));
  if (silent_s < 0 || seconds_since(progress) <= timeout_s) return;
  lost(rank,
       fmt::format("did not answer within {:.0f} s (last sign of life {:.1f} s ago). If the call is just slow, raise "
                   "cluster.worker_timeout_s",
                   timeout_s, silent_s));
}

void WorkerGroup::send(int rank, Message message, bool posted) {
  message.step = step_;
  workers_[rank].posted.push_back(posted);
  try {
    socket_.send(message, std::to_string(rank));
  } catch (const Error&) {  // it hung up; its exit says why, and may come a moment later
    const auto began = Clock::now();
    while (spawner_ && seconds_since(began) < 2) {
      check_exits();
      receive_one(50);
    }
    lost(rank, "hung up");
  }
}

// False if nothing came.
bool WorkerGroup::receive_one(int timeout_ms) {
  std::optional<Socket::Received> received = socket_.receive(timeout_ms);
  if (!received) return false;
  const int rank = std::atoi(received->peer.c_str());
  if (rank < 0 || rank >= size()) return true;
  Worker& worker = workers_[rank];
  worker.last_heard = Clock::now();
  Message& message = received->message;
  using namespace protocol;
  if (message.event.empty()) {
    const bool posted = !worker.posted.empty() && worker.posted.front();
    if (!worker.posted.empty()) worker.posted.pop_front();
    if (!posted) {
      worker.answered = true;
      if (!std::exchange(worker.is_stuck, false)) worker.answer = std::move(message);
    } else if (is_failure(message)) {
      worker.failure = from_message<Failure>(message, "a post");
    }
  } else if (message.event == name_of<Hello>()) {
    const Hello hello = from_message<Hello>(message);
    worker.greeted = true;
    worker.host = hello.host;
    worker.reached = hello.reached.value_or("");
    if (!worker.is_child) worker.pid = static_cast<pid_t>(hello.pid);
    check_version(hello, rank);
  } else if (message.event == name_of<Heartbeat>()) {
    worker.inside = from_message<Heartbeat>(message).inside.value_or("");
  } else if (message.event == name_of<Completions>()) {
    worker.last_progress = worker.last_heard;
    if (completions_handler_) completions_handler_(rank, from_message<Completions>(message));
  } else if (message.event == name_of<Progress>()) {
    worker.last_progress = worker.last_heard;
    if (progress_handler_) progress_handler_(rank, from_message<Progress>(message));
  } else if (message.event == name_of<Failed>()) {
    worker.failure = from_message<Failed>(message);
  }
  return true;
}

void WorkerGroup::check_exits() {
  if (!spawner_) return;
  while (const std::optional<process::ChildExit> exit = spawner_->next_exit(0)) {
    for (int rank = 0; rank < size(); ++rank) {
      if (!workers_[rank].is_child || workers_[rank].pid != exit->pid) continue;
      workers_[rank].exited = true;
      // Its answer may still be under way; an error that it could report says more than its exit status.
      for (int i = 0; i < 5 && !workers_[rank].answered; ++i) receive_one(20);
      if (!stopped_ && !(workers_[rank].answered && protocol::is_failure(workers_[rank].answer))) {
        lost(rank, "ended: " + process::words(exit->exit));
      }
    }
  }
}

std::string WorkerGroup::lost_text(int rank, const std::string& how) const {
  const Worker& worker = workers_[rank];
  std::string text = fmt::format("rank {} on {} (pid {}) {}; last call '{}', {:.1f} s ago", rank, worker.host,
                                 worker.pid, how, worker.last_call, seconds_since(worker.call_began));
  if (!worker.exited && !worker.inside.empty()) text += fmt::format("; it was in {}", worker.inside);
  if (options_.log_dir.empty() || !worker.is_child) return text;
  const std::string log = fmt::format("{}/worker-{}.log", options_.log_dir, rank);
  return text + fmt::format("; its log: {}{}", log, log_tail(log));
}

std::string WorkerGroup::words_of_peers(int rank) const {
  std::string text;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank && failed(peer)) text += fmt::format("\n    rank {}: {}", peer, failure_of(peer).error);
  }
  return text;
}

void WorkerGroup::lost(int rank, const std::string& how) {
  broken_ = true;
  const std::string text = lost_text(rank, how);
  // What its peers miss it for. They notice by themselves, and ask around for a moment.
  const auto began = Clock::now();
  const auto silent = [&](const Worker& other) {
    return !other.answered && !other.exited && &other != &workers_[rank];
  };
  while (std::ranges::any_of(workers_, silent) && seconds_since(began) < kPeersReportS) receive_one(kPollMs);
  throw Error(ErrorKind::worker, text + words_of_peers(rank));
}

bool WorkerGroup::failed(int rank) const {
  const Worker& worker = workers_[rank];
  return worker.failure || (worker.answered && protocol::is_failure(worker.answer));
}

protocol::Failure WorkerGroup::failure_of(int rank) const {
  const Worker& worker = workers_[rank];
  return worker.failure ? *worker.failure : protocol::from_message<protocol::Failure>(worker.answer, worker.last_call);
}

void WorkerGroup::throw_failure() {
  const auto only_lost_a_peer = [&](int rank) { return failure_of(rank).lost_peer; };
  int first = -1;  // of those that lost a peer
  const auto throw_own = [&] {
    for (int rank = size() - 1; rank >= 0; --rank)
      if (failed(rank)) first = rank;
    for (int rank = 0; rank < size(); ++rank)
      if (failed(rank) && !only_lost_a_peer(rank)) throw_worker_error(rank);
  };
  throw_own();
  if (first < 0) return;
  // A rank that lost a peer says less than the peer's own word, or its exit, which may come a moment later.
  const auto began = Clock::now();
  const auto unanswered = [](const Worker& worker) { return !worker.answered && !worker.exited; };
  const auto alive = [&](const Worker& worker) {
    return unanswered(worker) && seconds_since(worker.last_heard) < kNoLifeS;
  };
  while (std::ranges::any_of(workers_, alive) && seconds_since(began) < kPeersReportS) {
    receive_one(kPollMs);
    check_exits();
    throw_own();
  }
  if (std::ranges::any_of(workers_, unanswered)) throw_missing(first);
  throw_worker_error(first);
}

void WorkerGroup::throw_missing(int first) {
  broken_ = true;
  std::string unanswered;
  for (int rank = 0; rank < size(); ++rank) {
    const Worker& worker = workers_[rank];
    if (worker.answered || worker.exited) continue;
    const double silent_s = seconds_since(worker.last_heard);
    if (silent_s > kNoLifeS)
      throw Error(ErrorKind::worker,
                  lost_text(rank, fmt::format("gave no sign of life for {:.0f} s", silent_s)) + words_of_peers(rank));
    unanswered += fmt::format("\n    rank {}: did not answer; last sign of life {:.1f} s ago", rank, silent_s);
  }
  throw Error(ErrorKind::worker, worker_error(first) + words_of_peers(first) + unanswered);
}

std::string WorkerGroup::worker_error(int rank) const {
  const std::string text = failure_of(rank).error;
  return size() == 1 ? text : fmt::format("rank {} on {}: {}", rank, workers_[rank].host, text);
}

void WorkerGroup::throw_worker_error(int rank) {
  broken_ = broken_ || size() > 1;
  throw Error(failure_of(rank).error_kind, worker_error(rank));
}

void WorkerGroup::stop() noexcept {
  if (stopped_) return;
  stopped_ = true;
  try {
    if (!broken_ || options_.launch || in_process_.joinable()) {
      for (int rank = 0; rank < size(); ++rank) {
        if (!workers_[rank].greeted || workers_[rank].exited) continue;
        try {
          socket_.send(protocol::to_message(protocol::Shutdown{}), std::to_string(rank));
        } catch (const Error&) {  // it hung up
        }
      }
    }
    if (in_process_.joinable()) in_process_.join();
    if (!spawner_) return;
    reap(broken_ || std::ranges::any_of(workers_, &Worker::is_stuck) ? 0 : 10);
    for (Worker& worker : workers_) {
      if (worker.is_child && !worker.exited) spawner_->kill(worker.pid, SIGKILL);
    }
    reap(10);                        // what comes after may need their memory and ports
  } catch (const std::exception&) {  // the spawner is gone, and the workers with it
  }
}

// Waits until all workers have exited or the time is over.
void WorkerGroup::reap(double patience_s) {
  const auto began = Clock::now();
  const auto running = [](const Worker& worker) { return worker.is_child && !worker.exited; };
  while (std::ranges::any_of(workers_, running) && seconds_since(began) < patience_s) {
    if (const auto exit = spawner_->next_exit(100)) {
      for (Worker& worker : workers_) worker.exited |= worker.pid == exit->pid;
    }
  }
}

}  // namespace hexad::cluster
