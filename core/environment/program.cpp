#include "core/environment/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

extern char** environ;

namespace hexad::environment {
namespace {

constexpr size_t kMostAnswer = size_t{4} << 20;  // bytes of a line
constexpr size_t kMostNote = 400, kMostTail = 1500;
constexpr auto kEndingTakes = std::chrono::milliseconds(300);
constexpr auto kTick = std::chrono::milliseconds(50);

// Descriptor 3 is the pipe that only we hold the other end of. The shell keeps none of the program's own pipes, so that
// their end is the program's.
constexpr const char* kLeader =
    "exec 4<&0 </dev/null; "
    "\"$@\" <&4 3<&- 4<&- & program=$!; "
    "exec 4<&- >/dev/null 2>&1; "
    "(read -r _ <&3; kill -9 0) & "
    "exec 3<&-; wait $program; exit $?";

// A pipe whose descriptors lie above those that a child is given.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw ProgramFailed(std::string("no pipe: ") + std::strerror(errno));
    read = ::fcntl(ends[0], F_DUPFD_CLOEXEC, 10), write = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
    ::close(ends[0]), ::close(ends[1]);
    if (read >= 0 && write >= 0) return;
    const std::string why = std::strerror(errno);
    close_both();
    throw ProgramFailed("no pipe: " + why);
  }
  ~Pipe() { close_both(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take_read() { return std::exchange(read, -1); }
  int take_write() { return std::exchange(write, -1); }
  void close_both() const {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

struct SpawnActions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnActions() { ::posix_spawn_file_actions_init(&files), ::posix_spawnattr_init(&attributes); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&files), ::posix_spawnattr_destroy(&attributes); }
};

// Bytes that a person can read in a line of the log.
std::string readable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return result;
}

std::string excerpt(std::string_view text) {
  constexpr size_t kShown = 200;
  return "'" + readable(text.substr(0, kShown)) + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

Program::Program(const std::vector<std::string>& command, std::string who, std::atomic<int64_t>& log_lines)
    : who_(std::move(who)), log_lines_(log_lines) {
  start(command);
}

void Program::start(const std::vector<std::string>& command) {
  Pipe input, output, notes, life;
  SpawnActions actions;
  ::posix_spawn_file_actions_adddup2(&actions.files, input.read, 0);
  ::posix_spawn_file_actions_adddup2(&actions.files, output.write, 1);
  ::posix_spawn_file_actions_adddup2(&actions.files, notes.write, 2);
  ::posix_spawn_file_actions_adddup2(&actions.files, life.read, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&actions.attributes, &none);
  ::posix_spawnattr_setsigdefault(&actions.attributes, &all);
  ::posix_spawnattr_setpgroup(&actions.attributes, 0);  // Ctrl-C on the terminal reaches the controller alone
  ::posix_spawnattr_setflags(&actions.attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = {"/bin/sh", "-c", kLeader, "reward"};
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = ::posix_spawn(&pid_, "/bin/sh", &actions.files, &actions.attributes, argv.data(), environ);
  if (error != 0) throw ProgramFailed(std::string("cannot be started: ") + std::strerror(error));
  input_ = input.take_write(), output_ = output.take_read(), notes_ = notes.take_read(), life_ = life.take_write();
  for (const int end : {input_, output_, notes_}) ::fcntl(end, F_SETFL, O_NONBLOCK);
}

void Program::close_input() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

bool Program::leader_ended(siginfo_t& how) const {
  how = {};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == pid_;
}

Program::~Program() {
  close_input();
  // A healthy one ends by itself at the end of its input.
  const Clock::time_point until = Clock::now() + (healthy_ ? kEndingTakes : Clock::duration::zero());
  siginfo_t how;
  while (!leader_ended(how) && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(-pid_, SIGKILL);  // the number is ours until it is waited for
  ::waitpid(pid_, nullptr, 0);
  for (const int end : {output_, notes_, life_}) {
    if (end >= 0) ::close(end);
  }
}

// False when the input is full for now; an input that is closed is left to read_answer, which sees the end.
bool Program::write_some(std::string_view& rest) {
  const ssize_t count = ::write(input_, rest.data(), rest.size());
  if (count > 0) return rest.remove_prefix(static_cast<size_t>(count)), true;
  if (count < 0 && errno == EPIPE) return rest = {}, true;
  return false;
}

// True at the end of its output.
bool Program::read_answer() {
  char bytes[65536];
  for (;;) {
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count == 0) return true;
    if (count < 0) return false;
    answer_.append(bytes, static_cast<size_t>(count));
    if (answer_.size() > kMostAnswer)
      throw ProgramFailed(with_notes(fmt::format("answered more than {} MiB", kMostAnswer >> 20)));
  }
}

void Program::read_notes() {
  char bytes[4096];
  for (int i = 0; i < 16 && notes_ >= 0; ++i) {  // one that never stops writing must not keep us here
    const ssize_t count = ::read(notes_, bytes, sizeof bytes);
    if (count <= 0) return;
    log_notes({bytes, static_cast<size_t>(count)});
  }
}

// Whatever it writes is read, so that it never waits; little of it is kept.
void Program::log_notes(std::string_view text) {
  tail_.append(text);
  if (tail_.size() > kMostTail) tail_.erase(0, tail_.size() - kMostTail);
  for (const char c : text) {
    if (c != '\n') {
      if (note_.size() < kMostNote) note_ += c;
      continue;
    }
    const int64_t left = log_lines_--;
    if (left > 0) spdlog::info("{}: {}", who_, readable(note_));
    if (left == 1) spdlog::info("{}: the next lines of this step are left out", who_);
    note_.clear();
  }
}

std::string Program::with_notes(std::string what) const {
  std::string tail = tail_;
  while (!tail.empty() && std::isspace(static_cast<unsigned char>(tail.back()))) tail.pop_back();
  return tail.empty() ? what : what + ". Its standard error ends: " + readable(tail);
}

// After the end of its output.
std::string Program::how_it_ended() {
  const Clock::time_point until = Clock::now() + kEndingTakes;
  siginfo_t ended;
  do {
    if (leader_ended(ended)) {
      read_notes();
      const int code = ended.si_status;  // of the shell: 128 + signal for a program that was killed
      if (ended.si_code == CLD_EXITED && code <= 128) return fmt::format("ended with exit status {}", code);
      const int signal = ended.si_code == CLD_EXITED ? code - 128 : code;
      return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (Clock::now() < until);
  read_notes();
  return "closed its standard output";
}

std::string Program::why_gone() {
  siginfo_t how;
  return read_answer() || leader_ended(how) ? with_notes(how_it_ended()) : "";
}

std::string Program::ask(std::string_view line, Clock::time_point deadline, const std::atomic<bool>& stop) {
  const Clock::time_point began = Clock::now();
  healthy_ = false;
  if (read_answer()) throw ProgramFailed(with_notes(how_it_ended()));
  if (!answer_.empty()) throw ProgramFailed(with_notes("wrote without being asked: " + excerpt(answer_)));
  const std::string request = std::string(line) + "\n";
  std::string_view rest = request;
  for (;;) {
    pollfd waited[3] = {{output_, POLLIN, 0}, {notes_, POLLIN, 0}, {rest.empty() ? -1 : input_, POLLOUT, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
      throw ProgramFailed(with_notes(fmt::format("did not answer within {:.3g} s", seconds)));
    }
    ::poll(waited, 3, static_cast<int>(std::min(left, kTick).count()));
    if (stop) throw ProgramStopped();
    if (waited[2].revents) write_some(rest);
    if (waited[1].revents) {
      read_notes();
      if (!(waited[1].revents & POLLIN)) ::close(std::exchange(notes_, -1));  // it closed it
    }
    // Its end is also the leader's: a child that it leaves may keep its output open.
    siginfo_t how;
    const bool leader_gone = leader_ended(how);
    if (!waited[0].revents && !leader_gone) continue;
    const bool ended = read_answer() || leader_gone;
    const size_t end = answer_.find('\n');
    if (end == answer_.npos) {
      if (!ended) continue;
      throw ProgramFailed(with_notes(how_it_ended()));
    }
    if (!rest.empty()) throw ProgramFailed(with_notes("answered before it had read the request: " + excerpt(answer_)));
    if (end + 1 != answer_.size()) throw ProgramFailed(with_notes("answered more than one line: " + excerpt(answer_)));
    answered_ = healthy_ = true;
    answer_.pop_back();
    return std::exchange(answer_, {});
  }
}

}  // namespace hexad::environment
