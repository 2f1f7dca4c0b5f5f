#include "core/cluster/worker_group.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "core/base/error.hpp"
#include "core/cluster/worker.hpp"

namespace hexad::cluster {
namespace {

constexpr int kPollMs = 200;

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

std::string log_tail(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (lines.size() > 5) lines.erase(lines.begin());
  }
  std::string tail;
  for (const std::string& line : lines) tail += "\n    " + line;
  return tail;
}

}  // namespace

WorkerGroup::WorkerGroup(Spawner* spawner, WorkerGroupOptions options)
    : spawner_(spawner), options_(std::move(options)), keys_(make_keys()), socket_(Socket::listen("127.0.0.1", keys_)), workers_(options_.world_size) {
  try {
    for (int rank = 0; rank < size(); ++rank) start_worker(rank);
    await("start", [](const Worker& worker) { return worker.greeted; }, options_.start_timeout_s);
  } catch (...) {
    stop();
    throw;
  }
}

WorkerGroup::~WorkerGroup() { stop(); }

void WorkerGroup::start_worker(int rank) {
  Worker& worker = workers_[rank];
  worker.call_began = worker.last_heard = Clock::now();
  const Bootstrap bootstrap{socket_.endpoint(), keys_.public_key, rank};
  if (!spawner_) {
    in_process_ = std::thread([bootstrap] { run_worker(bootstrap, /*own_process=*/false); });
    return;
  }
  const std::string log = options_.log_dir.empty() ? "" : fmt::format("{}/worker-{}.log", options_.log_dir, rank);
  // OpenMP threads that spin at every barrier stop each other wherever ranks (or strangers) share the cores: measured
  // four to a hundred times slower steps on two busy cores.
  std::map<std::string, std::string> variables;
  if (!std::getenv("OMP_WAIT_POLICY")) variables["OMP_WAIT_POLICY"] = "PASSIVE";
  worker.pid = spawner_->spawn({{options_.program, "worker"}, variables, to_text(bootstrap), log});
}

std::vector<Message> WorkerGroup::call_all(const std::string& command, const Message& message) {
  return call_all(command, [&](int) { return message; });
}

std::vector<Message> WorkerGroup::call_all(const std::string& command, const std::function<Message(int rank)>& make) {
  if (broken_ || stopped_) fail(ErrorKind::worker, "cannot call '{}': the workers have ended", command);
  for (int rank = 0; rank < size(); ++rank) {
    Message message = make(rank);
    message.header["command"] = command;
    Worker& worker = workers_[rank];
    worker.answered = false;
    worker.last_call = command;
    worker.call_began = Clock::now();
    socket_.send(message, std::to_string(rank));
  }
  await(command, [](const Worker& worker) { return worker.answered; }, options_.call_timeout_s);
  std::vector<Message> answers;
  for (int rank = 0; rank < size(); ++rank) {
    throw_worker_error(rank);
    answers.push_back(std::move(workers_[rank].answer));
  }
  return answers;
}

void WorkerGroup::await(const std::string& what, const std::function<bool(const Worker&)>& done, double timeout_s) {
  const auto began = Clock::now();
  while (true) {
    int waiting = -1;
    for (int rank = 0; rank < size() && waiting < 0; ++rank) {
      if (!done(workers_[rank])) waiting = rank;
    }
    if (waiting < 0) return;
    receive_one(kPollMs);
    check_exits();
    // One rank's failure is everyone's: its peers may be waiting for it inside a collective, and never answer.
    for (int rank = 0; rank < size(); ++rank) {
      if (workers_[rank].answered && workers_[rank].answer.header.contains("error")) throw_worker_error(rank);
      if (workers_[rank].greeted && !done(workers_[rank]) && seconds_since(workers_[rank].last_heard) > options_.heartbeat_timeout_s) {
        lost(rank, fmt::format("gave no sign of life for {:.0f} s", seconds_since(workers_[rank].last_heard)));
      }
    }
    if (!done(workers_[waiting]) && seconds_since(began) > timeout_s) {
      lost(waiting, fmt::format("did not answer '{}' within {:.0f} s (last sign of life {:.1f} s ago). If the call is just slow, "
                                "raise cluster.worker_timeout_s", what, timeout_s, seconds_since(workers_[waiting].last_heard)));
    }
  }
}

void WorkerGroup::receive_one(int timeout_ms) {
  std::optional<Socket::Received> received = socket_.receive(timeout_ms);
  if (!received) return;
  const int rank = std::atoi(received->peer.c_str());
  if (rank < 0 || rank >= size()) return;
  Worker& worker = workers_[rank];
  worker.last_heard = Clock::now();
  const Json& header = received->message.header;
  const std::string event = header.value("event", "");
  if (event == "hello") {
    worker.greeted = true;
    worker.host = header.value("host", "?");
  } else if (event.empty()) {
    worker.answered = true;
    worker.answer = std::move(received->message);
  } else if (event != "heartbeat" && event_handler_) {
    event_handler_(rank, header);
  }
}

void WorkerGroup::check_exits() {
  if (!spawner_) return;
  while (const std::optional<ChildExit> exit = spawner_->next_exit(0)) {
    for (int rank = 0; rank < size(); ++rank) {
      if (workers_[rank].pid != exit->pid) continue;
      workers_[rank].exited = true;
      // Its answer may still be under way; an error that it could report says more than its exit status.
      for (int i = 0; i < 5 && !workers_[rank].answered; ++i) receive_one(20);
      if (!stopped_ && !(workers_[rank].answered && workers_[rank].answer.header.contains("error"))) {
        lost(rank, "ended: " + describe_exit(exit->status));
      }
    }
  }
}

void WorkerGroup::lost(int rank, const std::string& how) {
  broken_ = true;
  const Worker& worker = workers_[rank];
  std::string text = fmt::format("rank {} on {} (pid {}) {}; last call '{}', {:.1f} s ago", rank, worker.host, worker.pid, how,
                                 worker.last_call, seconds_since(worker.call_began));
  if (!options_.log_dir.empty()) {
    const std::string log = fmt::format("{}/worker-{}.log", options_.log_dir, rank);
    text += fmt::format("; its log: {}{}", log, log_tail(log));
  }
  throw Error(ErrorKind::worker, text);
}

void WorkerGroup::throw_worker_error(int rank) {
  const Json& header = workers_[rank].answer.header;
  if (!workers_[rank].answered || !header.contains("error")) return;
  broken_ = broken_ || size() > 1;
  const auto kind = static_cast<ErrorKind>(header.value("error_kind", static_cast<int>(ErrorKind::worker)));
  const std::string text = header.at("error").get<std::string>();
  throw Error(kind, size() == 1 ? text : fmt::format("rank {} on {}: {}", rank, workers_[rank].host, text));
}

void WorkerGroup::stop() noexcept {
  if (stopped_) return;
  stopped_ = true;
  try {
    if (!broken_) {
      for (int rank = 0; rank < size(); ++rank) {
        if (!workers_[rank].greeted || workers_[rank].exited) continue;
        Message bye;
        bye.header["command"] = "shutdown";
        socket_.send(bye, std::to_string(rank));
      }
    }
    if (in_process_.joinable()) in_process_.join();
    if (!spawner_) return;
    const auto began = Clock::now();
    const double patience_s = broken_ ? 0 : 10;
    const auto running = [&] { return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.pid && !w.exited; }); };
    while (running() && seconds_since(began) < patience_s) {
      if (const auto exit = spawner_->next_exit(100)) {
        for (Worker& worker : workers_) worker.exited |= worker.pid == exit->pid;
      }
    }
    for (Worker& worker : workers_) {
      if (worker.pid && !worker.exited) spawner_->kill(worker.pid, SIGKILL);
    }
  } catch (const std::exception&) {  // the spawner is gone, and the workers with it
  }
}

}  // namespace hexad::cluster
