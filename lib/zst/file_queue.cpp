#include "lib/zst/file_queue.hpp"

#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "lib/base/background.hpp"
#include "lib/base/file/append_file.hpp"
#include "lib/zst/lines_file.hpp"

namespace hexad::zst {

struct FileQueue::State {
  const std::filesystem::path folder;
  const size_t most_bytes;

  mutable std::mutex mutex = {};  // of all below
  std::condition_variable wake = {}, idle = {};
  std::deque<WaitingFile> files = {};
  bool is_writing = false, ended = false;
  bool is_full = false;  // the last that was written found no room
  std::string no_room = {};
  std::exception_ptr failure = {};
  int64_t left_out = 0, too_slow = 0;

  void work();
  void write_front(std::unique_lock<std::mutex>& lock);
  void drop_oldest();
  bool can_go_on() const { return !files.empty() && no_room.empty(); }
};

namespace {

// The run's signals are for the threads that wait for them.
void block_signals() {
  sigset_t some;
  sigemptyset(&some);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGPIPE}) sigaddset(&some, signal);
  ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
}

}  // namespace

FileQueue::FileQueue(std::filesystem::path folder, size_t most_bytes)
    : state_(std::make_shared<State>(std::move(folder), most_bytes)) {
  std::thread([state = state_] { state->work(); }).detach();
}

FileQueue::~FileQueue() {
  const std::scoped_lock lock(state_->mutex);
  state_->ended = true;
  state_->wake.notify_all();
}

void FileQueue::State::work() {
  block_signals();
  give_way();
  std::unique_lock lock(mutex);
  while (!ended) {
    if (can_go_on())
      write_front(lock);
    else
      wake.wait(lock);
  }
}

void FileQueue::State::write_front(std::unique_lock<std::mutex>& lock) {
  WaitingFile file = std::move(files.front());
  files.pop_front();
  is_writing = true;
  lock.unlock();
  std::string full;
  std::exception_ptr thrown;
  try {
    write_lines(folder, file.name, file.count, file.line);
  } catch (const DiskFull& error) {
    full = error.what();
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  is_writing = false, is_full = !full.empty();
  if (thrown && !failure) failure = thrown;
  if (is_full) {
    no_room = full;
    files.push_front(std::move(file));
    drop_oldest();
  }
  if (!can_go_on()) idle.notify_all();
}

void FileQueue::State::drop_oldest() {
  size_t bytes = 0;
  for (const WaitingFile& file : files) bytes += file.bytes;
  for (; bytes > most_bytes && files.size() > 1; files.pop_front()) {
    bytes -= files.front().bytes;
    if (++(is_full ? left_out : too_slow) == 1 && !is_full)
      spdlog::warn("{}: files come faster than they can be written: {} is left out, and may not be the last",
                   folder.string(), files.front().name);
  }
}

void FileQueue::put(WaitingFile file) {
  const std::scoped_lock lock(state_->mutex);
  state_->files.push_back(std::move(file));
  state_->drop_oldest();
  state_->wake.notify_all();
  if (const auto failure = std::exchange(state_->failure, nullptr)) std::rethrow_exception(failure);
}

void FileQueue::retry() {
  const std::scoped_lock lock(state_->mutex);
  state_->no_room.clear();
  state_->wake.notify_all();
}

bool FileQueue::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  const bool done = state_->idle.wait_for(lock, patience, [&] { return !state_->is_writing && !state_->can_go_on(); });
  if (const auto failure = std::exchange(state_->failure, nullptr)) std::rethrow_exception(failure);
  return done;
}

std::string FileQueue::no_room() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->no_room;
}

int64_t FileQueue::waiting() const {
  const std::scoped_lock lock(state_->mutex);
  return static_cast<int64_t>(state_->files.size()) + state_->is_writing;
}

int64_t FileQueue::left_out() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->left_out;
}

}  // namespace hexad::zst
