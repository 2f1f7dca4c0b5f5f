#include "core/plugin/confined/proxy/process.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <system_error>
#include <thread>

#include "core/plugin/confined/serve/server.hpp"
#include "lib/base/error.hpp"
#include "lib/base/utf8.hpp"
#include "lib/process/start.hpp"

namespace hexad::plugin::confined {
namespace {

constexpr size_t kMostOutput = 2000;
constexpr auto kEndingTakes = std::chrono::seconds(2);

// This side's, and the other's.
std::array<process::Descriptor, 2> make_connection() {
  try {
    return process::make_sockets(SOCK_STREAM);
  } catch (const std::system_error& error) {
    fail(ErrorKind::worker, "no socket pair for a plugin's own process: {}", error.code().message());
  }
}

std::string status_text(const process::Exit& exit) {
  return exit.signal != 0 ? sentence(exit) : fmt::format("ended by itself with exit code {}", exit.code);
}

}  // namespace

Process::Process(const std::filesystem::path& program) {
  auto [control, their_control] = make_connection();
  control_ = std::make_unique<Channel>(control.release(), /*takes_descriptors=*/false);
  // A child that dies with us dies with the thread that has started it, so the thread that watches it does that.
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  std::thread([this, started = std::move(promise), program, end = std::move(their_control)]() mutable {
    process::Descriptor output;
    try {
      output = start(program, end);
      end.close();
      started.set_value();
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    watch(output);
  }).detach();
  done.get();
}

// Returns what to read of its output.
process::Descriptor Process::start(const std::filesystem::path& program, const process::Descriptor& control) {
  try {
    auto [output, output_end] = process::make_pipe();
    const process::Descriptor nothing = process::null_device();
    process::Command command = {.arguments = {program.string(), kCommand}};
    command.setup = {.descriptors = {{nothing.get(), STDIN_FILENO},
                                     {output_end.get(), STDOUT_FILENO},
                                     {output_end.get(), STDERR_FILENO},
                                     {control.get(), kControlDescriptor}},
                     .limits = {{RLIMIT_CORE, 0}},
                     .dies_with_us = true,
                     .ignores_job_signals = true};
    child_ = process::Child(process::start(command));
    output.never_wait();
    return std::move(output);
  } catch (const std::system_error& error) {
    fail(ErrorKind::worker, "cannot start {} for a plugin's own process: {}", program.string(), error.code().message());
  }
}

void Process::keep_output(const char* text, size_t size) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, size);
  const std::scoped_lock lock(mutex_);
  tail_.append(text, size);
  tail_ = utf8_back(tail_, kMostOutput);
}

// Runs on the thread that started the process, until the process has ended.
void Process::watch(const process::Descriptor& output) {
  const process::Descriptor handle = child_.handle();
  pollfd waited[2] = {{output.get(), POLLIN, 0}, {handle.get(), POLLIN, 0}};
  char text[4096];
  bool running = true;
  while (running) {
    // Without a handle on the process (an old kernel) its end is noticed by its output, and by looking now and then.
    ::poll(waited, 2, handle ? -1 : 100);
    running = !child_.peek();
    ssize_t count = 0;
    while ((count = ::read(output.get(), text, sizeof text)) > 0) keep_output(text, static_cast<size_t>(count));
    if (count == 0) waited[0].fd = -1;
  }
  const std::scoped_lock lock(mutex_);
  status_ = child_.wait();
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  changed_.notify_all();
}

std::unique_ptr<Channel> Process::connect() {
  auto [ours, theirs] = make_connection();
  const int socket = ours.get();
  auto channel = std::make_unique<Channel>(ours.release(), /*takes_descriptors=*/false);
  const std::scoped_lock lock(mutex_);
  if (status_) throw Closed();
  control_->send(kCall, "", {theirs.get()}, now_ns() + 10'000'000'000);
  sockets_.push_back(socket);
  return channel;
}

void Process::end(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (status_ || !why_.empty()) return;
  why_ = why;
  child_.kill_group();
}

std::string Process::ending(std::string_view function) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return status_.has_value(); };
  if (!changed_.wait_for(lock, kEndingTakes, over) && why_.empty()) {
    why_ = "closed its connection to the engine";
    child_.kill_group();
  }
  const bool ended = changed_.wait_for(lock, kEndingTakes, over);
  std::string text = !why_.empty() ? why_ + " and was ended" : ended ? status_text(*status_) : "is lost";
  text += fmt::format(" during {}", function);
  std::string_view tail = tail_;
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.remove_suffix(1);
  if (!tail.empty()) text += fmt::format(". It last wrote:\n{}", tail);
  return text;
}

}  // namespace hexad::plugin::confined
