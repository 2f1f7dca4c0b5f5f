#include "lib/program/asked.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "lib/base/utf8.hpp"

namespace hexad::program {
namespace {

constexpr size_t kMostAnswer = size_t{4} << 20;  // bytes of a line
constexpr auto kEndingTakes = std::chrono::milliseconds(300);
constexpr auto kTick = std::chrono::milliseconds(50);

std::string excerpt(std::string_view text) {
  constexpr size_t kShown = 200;
  return "'" + readable(utf8_front(text, kShown)) + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

Program::Program(const Start& start, std::string who, std::atomic<int64_t>& log_lines)
    : refusal_hint_(start.sandbox ? start.refusal_hint : ""), notes_(std::move(who), log_lines) {
  try {
    auto [input, input_end] = process::make_pipe();
    auto [output, output_end] = process::make_pipe();
    auto [notes, notes_end] = process::make_pipe();
    for (const process::Descriptor* ours : {&input_end, &output}) ours->never_wait();
    tree_.emplace(start.name, start.command, input.get(), output_end.get(), notes_end.get(), start.sandbox);
    input_ = std::move(input_end), output_ = std::move(output);
    notes_.open(std::move(notes));
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

std::string Program::with_notes(const std::string& what) const {
  const std::string tail = notes_.tail();
  if (tail.empty()) return what;
  const bool refused = tail.find("ermission denied") != tail.npos || tail.find("peration not permitted") != tail.npos;
  return what + ". Its standard error ends: " + tail + (refused ? refusal_hint_ : "");
}

// After the end of its output.
std::string Program::how_it_ended() {
  const Clock::time_point until = Clock::now() + kEndingTakes;
  do {
    if (const auto exit = tree_->ended()) {
      notes_.read();
      return sentence(*exit);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (Clock::now() < until);
  notes_.read();
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
                        {notes_.descriptor(), POLLIN, 0},
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
    if (waited[1].revents) notes_.read(waited[1].revents);
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

}  // namespace hexad::program
