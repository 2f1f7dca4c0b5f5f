#include "core/environment/program/program.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/base/utf8.hpp"

namespace hexad::environment {
namespace {

constexpr size_t kMostAnswer = size_t{4} << 20;  // bytes of a line
constexpr size_t kMostNote = 400, kMostTail = 1500;
constexpr auto kEndingTakes = std::chrono::milliseconds(300);
constexpr auto kTick = std::chrono::milliseconds(50);

// Bytes that a person can read in a line of the log.
std::string readable(std::string_view text) {
  std::string buffer, result(valid_utf8(text, buffer));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return result;
}

std::string excerpt(std::string_view text) {
  constexpr size_t kShown = 200;
  return "'" + readable(utf8_front(text, kShown)) + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

Program::Program(const std::vector<std::string>& command, const std::optional<process::Sandbox>& sandbox,
                 std::string who, std::atomic<int64_t>& log_lines)
    : who_(std::move(who)), sandboxed_(sandbox), log_lines_(log_lines) {
  try {
    auto [input, input_end] = process::make_pipe();
    auto [output, output_end] = process::make_pipe();
    auto [notes, notes_end] = process::make_pipe();
    for (const process::Descriptor* ours : {&input_end, &output, &notes}) ours->never_wait();
    tree_.emplace("reward", command, input.get(), output_end.get(), notes_end.get(), sandbox);
    input_ = std::move(input_end), output_ = std::move(output), notes_ = std::move(notes);
  } catch (const std::system_error& error) {
    throw ProgramFailed("cannot be started: " + error.code().message());
  }
}

void Program::close_input() { input_.close(); }

Program::~Program() {
  close_input();
  // A healthy one ends by itself at the end of its input.
  const Clock::time_point until = Clock::now() + (healthy_ ? kEndingTakes : Clock::duration::zero());
  while (!tree_->ended() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// False when the input is full for now; an input that is closed is left to read_answer, which sees the end.
bool Program::write_some(std::string_view& rest) {
  const ssize_t count = ::write(input_.get(), rest.data(), rest.size());
  if (count > 0) return rest.remove_prefix(static_cast<size_t>(count)), true;
  if (count < 0 && errno == EPIPE) return rest = {}, true;
  return false;
}

// True at the end of its output.
bool Program::read_answer() {
  char bytes[65536];
  for (;;) {
    const ssize_t count = ::read(output_.get(), bytes, sizeof bytes);
    if (count == 0) return true;
    if (count < 0) return false;
    answer_.append(bytes, static_cast<size_t>(count));
    if (answer_.size() > kMostAnswer)
      throw ProgramFailed(with_notes(fmt::format("answered more than {} MiB", kMostAnswer >> 20)));
  }
}

void Program::read_notes() {
  char bytes[4096];
  for (int i = 0; i < 16 && notes_; ++i) {  // one that never stops writing must not keep us here
    const ssize_t count = ::read(notes_.get(), bytes, sizeof bytes);
    if (count <= 0) return;
    log_notes({bytes, static_cast<size_t>(count)});
  }
}

// Whatever it writes is read, so that it never waits; little of it is kept.
void Program::log_notes(std::string_view text) {
  tail_.append(text);
  tail_ = utf8_back(tail_, kMostTail);
  for (const char c : text) {
    if (c != '\n') {
      if (note_.size() < kMostNote) note_ += c;
      continue;
    }
    const int64_t left = log_lines_--;
    if (left > 0) spdlog::info("{}: {}", who_, readable(utf8_front(note_, kMostNote - 1)));
    if (left == 1) spdlog::info("{}: the next lines of this step are left out", who_);
    note_.clear();
  }
}

std::string Program::with_notes(const std::string& what) const {
  std::string tail = tail_;
  while (!tail.empty() && std::isspace(static_cast<unsigned char>(tail.back()))) tail.pop_back();
  if (tail.empty()) return what;
  const bool refused =
      sandboxed_ && (tail.find("ermission denied") != tail.npos || tail.find("peration not permitted") != tail.npos);
  return what + ". Its standard error ends: " + readable(tail) +
         (refused ? " (what its sandbox keeps from a program: docs/rewards.md)" : "");
}

// After the end of its output.
std::string Program::how_it_ended() {
  const Clock::time_point until = Clock::now() + kEndingTakes;
  do {
    if (const auto exit = tree_->ended()) {
      read_notes();
      return sentence(*exit);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (Clock::now() < until);
  read_notes();
  return "closed its standard output";
}

std::string Program::why_gone() { return read_answer() || tree_->ended() ? with_notes(how_it_ended()) : ""; }

std::string Program::ask(std::string_view line, Clock::time_point deadline, const std::atomic<bool>& stop) {
  const Clock::time_point began = Clock::now();
  healthy_ = false;
  if (read_answer()) throw ProgramFailed(with_notes(how_it_ended()));
  if (!answer_.empty()) throw ProgramFailed(with_notes("wrote without being asked: " + excerpt(answer_)));
  const std::string request = std::string(line) + "\n";
  std::string_view rest = request;
  for (;;) {
    pollfd waited[4] = {{output_.get(), POLLIN, 0},
                        {notes_.get(), POLLIN, 0},
                        {rest.empty() ? -1 : input_.get(), POLLOUT, 0},
                        {tree_->life(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
      throw ProgramFailed(with_notes(fmt::format("did not answer within {:.3g} s", seconds)));
    }
    ::poll(waited, 4, static_cast<int>(std::min(left, kTick).count()));
    if (stop) throw ProgramStopped();
    if (waited[2].revents) write_some(rest);
    if (waited[1].revents) {
      read_notes();
      if (!(waited[1].revents & POLLIN)) notes_.close();  // it closed it
    }
    // Its end is also what the leader says: a child that it leaves may keep its output open.
    const bool gone = tree_->ended().has_value();
    if (!waited[0].revents && !gone) continue;
    const bool at_end = read_answer() || gone;
    const size_t end = answer_.find('\n');
    if (end == answer_.npos) {
      if (!at_end) continue;
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
