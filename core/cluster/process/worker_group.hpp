// The controller's side of its workers: starts them, sends commands, waits with a deadline, reports what went wrong.
#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/cluster/message/socket.hpp"
#include "core/cluster/placement.hpp"
#include "core/cluster/process/launch.hpp"
#include "core/cluster/process/spawner.hpp"
#include "core/cluster/protocol/protocol.hpp"

namespace hexad::cluster {

struct WorkerGroupOptions {
  int world_size = 1;
  std::string program;              // absolute path of `hexad`
  std::string log_dir;              // worker-<rank>.log goes there; empty: our own output
  double call_timeout_s = 600;      // for the answer to one command, or for the next sign of progress
  double start_timeout_s = 120;     // for a worker's first sign of life
  double heartbeat_timeout_s = 60;  // without any sign of life a worker counts as hung
  // This process is a launcher's first one: it starts rank 0 alone, and finds the others by `meeting_dir`, a folder
  // that all hosts see. They are the launcher's to end.
  std::optional<Launch> launch;
  std::string meeting_dir;
  // > 0: the run ends. While `has_trained` is false every call is given up, and the workers with it; from then on a
  // command that may be cancelled is; its ranks have longer to come back while `has_unsaved`. Null: never.
  const std::atomic<int>* interrupted = nullptr;
  const std::atomic<bool>* has_trained = nullptr;
  const std::atomic<bool>* has_unsaved = nullptr;
};

// Workers are named by rank, 0 .. size-1. One thread uses a group. A worker that dies, hangs or does not answer in time
// ends the call with an Error(worker) that names rank, host, last call and its log; all other workers are ended too. A
// call that is given up because the run is interrupted throws Interrupted.
class WorkerGroup {
 public:
  // spawner null: one worker on a thread of this process (`--in-process`), for a debugger.
  WorkerGroup(Spawner* spawner, WorkerGroupOptions options);
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  int size() const { return options_.world_size; }
  // Ranks on the first one's host.
  int local_world() const { return options_.launch ? options_.launch->local_world : size(); }
  // Of the first one's host, on the run's own interface: ranks of other hosts have reached this process by it.
  std::string address() const;
  const std::string& host(int rank) const { return workers_[rank].host; }
  pid_t pid(int rank) const { return workers_[rank].pid; }

  RankRange all() const { return {0, size()}; }

  // Sends a command of the protocol, make(rank), to these ranks and returns their replies in rank order. A worker's own
  // error comes back as Error of the kind it was, prefixed with the rank when there are several.
  template <typename Command>
  std::vector<typename Command::Reply> call(RankRange ranks, const std::function<Command(int rank)>& make) {
    std::vector<typename Command::Reply> replies;
    const auto message = [&](int rank) { return protocol::to_message(make(rank)); };
    for (const Message& answer : call_raw(ranks, message, protocol::kMayBeCancelled<Command>))
      replies.push_back(protocol::from_message<typename Command::Reply>(answer, protocol::name_of<Command>()));
    return replies;
  }
  // The same command to each.
  template <typename Command>
  std::vector<typename Command::Reply> call(RankRange ranks, const Command& command) {
    return call<Command>(ranks, [&](int) { return command; });
  }
  // With messages as they are.
  std::vector<Message> call_raw(RankRange ranks, const std::function<Message(int rank)>& make,
                                bool may_be_cancelled = false);

  // As call, but waits for nothing. Replies are thrown away; an error among them ends the next call or wait.
  template <typename Command>
  void post(RankRange ranks, const std::function<Command(int rank)>& make) {
    post_raw(ranks, [&](int rank) { return protocol::to_message(make(rank)); });
  }
  void post_raw(RankRange ranks, const std::function<Message(int rank)>& make);

  // Called again and again while a call or wait_until waits. It may post, and must not call. True: it wants to be
  // called soon again.
  void meanwhile(std::function<bool()> handler) { meanwhile_ = std::move(handler); }

  // The number that the calls to come carry as their step: plugins and their errors name it.
  void set_step(int64_t step) { step_ = step; }

  // Called with what workers say of a call that takes long.
  void on_progress(std::function<void(int rank, const protocol::Progress&)> handler) {
    progress_handler_ = std::move(handler);
  }
  // Called with requests that outlive their command and have ended, whenever messages are received.
  void on_completions(std::function<void(int rank, const protocol::Completions&)> handler) {
    completions_handler_ = std::move(handler);
  }
  // Receives until done() or the time is over, which is false. A worker that is lost, or that has failed, throws as in
  // a call.
  bool wait_until(const std::function<bool()>& done, double timeout_s);

  // Ends the workers in order; kills those that do not end in time. Never throws.
  void stop() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    pid_t pid = 0;
    bool is_child = false;  // else a launcher has started it
    std::string host = "localhost", reached;
    std::string last_call = "start";
    std::string inside;  // the plugin's function that it was in a second ago; empty: none
    Clock::time_point call_began{}, last_heard{}, last_progress{};
    bool greeted = false, answered = false, exited = false;
    bool is_stuck = false;    // it was told to cancel its call, and has not come back
    std::deque<bool> posted;  // of the commands that it has not answered, in their order
    Message answer;
    std::optional<protocol::Failure> failure;  // of requests that it served between commands, or of a post
  };

  void start_worker(int rank);
  void await(const std::function<bool(const Worker&)>& done, double timeout_s, bool may_be_cancelled = false);
  // Throws Interrupted where the run is, and the call may be given up.
  void end_if_interrupted(bool may_be_cancelled);
  bool receive_one(int timeout_ms);
  void send(int rank, Message message, bool posted);
  int pause_ms();
  void check_exits();
  void check_silence(const std::function<bool(const Worker&)>& done, double timeout_s);
  void reap(double patience_s);
  bool failed(int rank) const;  // answered with an error, or has sent one
  protocol::Failure failure_of(int rank) const;
  // Ends the call if a rank has failed, with the error that says most.
  void throw_failure();
  // Every failed rank has lost a peer, and some have not answered: blames those, and quotes all.
  [[noreturn]] void throw_missing(int first);
  [[noreturn]] void lost(int rank, const std::string& how);
  [[noreturn]] void throw_worker_error(int rank);
  std::string lost_text(int rank, const std::string& how) const;
  std::string worker_error(int rank) const;
  std::string words_of_peers(int rank) const;  // the errors of all others, a line each

  Spawner* spawner_;
  WorkerGroupOptions options_;
  KeyPair keys_;
  Socket socket_;
  std::vector<Worker> workers_;
  RankRange called_;  // the ranks of the last call
  std::thread in_process_;
  std::function<void(int, const protocol::Progress&)> progress_handler_;
  std::function<void(int, const protocol::Completions&)> completions_handler_;
  int64_t step_ = 0;
  bool broken_ = false, stopped_ = false;
  std::function<bool()> meanwhile_;
};

}  // namespace hexad::cluster
