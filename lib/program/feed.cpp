#include "lib/program/feed.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lib/base/text.hpp"
#include "lib/program/sigpipe.hpp"

namespace hexad::program {
namespace {

constexpr int64_t kLogLines = 100;
constexpr int kLookEveryMs = 200;  // at the clock

}  // namespace

Feed::Feed(FeedSettings settings)
    : settings_(std::move(settings)), log_lines_(kLogLines), notes_(settings_.who, log_lines_) {
  try {
    auto [woken, wake] = process::make_pipe();
    woken_ = std::move(woken), wake_ = std::move(wake);
    woken_.never_wait(), wake_.never_wait();
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {  // no descriptor, no thread
    gone_ = true;
    warn_of(error);
  }
}

Feed::~Feed() {
  {
    const std::scoped_lock lock(mutex_);
    if (!closed_) closed_ = true, until_ = Clock::now();
  }
  wake();
  if (thread_.joinable()) thread_.join();
  if (left_out_ > 0)
    spdlog::warn("{}: {} of {} lines have not reached `{}`", settings_.who, left_out_, put_,
                 joined(settings_.command, " "));
}

// A pipe that is full wakes it as well.
void Feed::wake() { [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), "", 1); }

void Feed::put(std::string line) {
  {
    const std::scoped_lock lock(mutex_);
    ++put_;
    if (gone_ || closed_ || bytes_ + line.size() > settings_.most_bytes) {
      ++left_out_;
      return;
    }
    bytes_ += line.size();
    lines_.push_back(std::move(line));
  }
  wake();
}

void Feed::close(std::string last, std::chrono::milliseconds patience) {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    ++put_;
    closed_ = true, patience_ = patience, until_ = Clock::now() + patience;
    bytes_ += last.size();
    if (gone_)
      ++left_out_;
    else
      lines_.push_back(std::move(last));
  }
  wake();
}

void Feed::work() {
  block_sigpipe();
  try {
    start();
    feed_until_it_ends();
  } catch (const std::exception& error) {  // it is nothing that the run should end for
    warn_of(error);
  }
  leave_rest_out();
  tree_.reset();
}

void Feed::start() {
  auto [input, input_end] = process::make_pipe();
  auto [notes, notes_end] = process::make_pipe();
  input_end.never_wait();
  tree_.emplace(settings_.name, settings_.command, input.get(), notes_end.get(), notes_end.get(), std::nullopt,
                settings_.withheld);
  input_ = std::move(input_end);
  notes_.open(std::move(notes));
}

void Feed::feed_until_it_ends() {
  for (;;) {
    const bool has_line = next_line();
    pollfd waited[4] = {{has_line ? input_.get() : -1, POLLOUT, 0},
                        {notes_.descriptor(), POLLIN, 0},
                        {tree_->life(), POLLIN, 0},
                        {woken_.get(), POLLIN, 0}};
    ::poll(waited, 4, kLookEveryMs);
    char bytes[256];
    while (waited[3].revents && ::read(woken_.get(), bytes, sizeof bytes) > 0) continue;
    if (waited[1].revents) notes_.read(waited[1].revents);
    if (waited[0].revents) write_some();
    if (const auto exit = tree_->ended()) {
      notes_.read();
      const std::string how = how_it_ended(*exit);
      return how.empty() ? void() : warn(how);
    }
    if (is_late()) return;
  }
}

// Whether there is something to write. At the end of what there will ever be the program's input ends.
bool Feed::next_line() {
  const std::scoped_lock lock(mutex_);
  if (line_.empty() && !lines_.empty()) {
    bytes_ -= lines_.front().size();
    line_ = std::move(lines_.front()) + "\n", written_ = 0;
    lines_.pop_front();
  }
  if (line_.empty() && closed_) input_.close();
  return !line_.empty() && input_;
}

void Feed::write_some() {
  const ssize_t count = ::write(input_.get(), line_.data() + written_, line_.size() - written_);
  if (count > 0) written_ += static_cast<size_t>(count);
  if (written_ == line_.size()) line_.clear();
  if (count >= 0 || errno != EPIPE) return;
  input_.close();  // it reads no more, and may still be about to end
  leave_rest_out();
}

bool Feed::is_late() const {
  const std::scoped_lock lock(mutex_);
  if (Clock::now() < until_) return false;
  if (patience_.count() > 0)
    warn(fmt::format("has not ended {:.3g} s after its last line and is killed",
                     std::chrono::duration<double>(patience_).count()));
  return true;
}

// Empty: as it should.
std::string Feed::how_it_ended(const process::Exit& exit) {
  const std::scoped_lock lock(mutex_);
  const bool had_all = closed_ && !input_ && left_out_ == 0;
  if (had_all && exit == process::Exit{}) return "";
  return sentence(exit) + (closed_ ? "" : ", and the run goes on without it");
}

void Feed::warn(const std::string& what) const {
  const std::string line = notes_.last_line();
  spdlog::warn("{}: `{}` {}{}", settings_.who, joined(settings_.command, " "), what,
               line.empty() ? "" : ". The last line that it wrote: " + line);
}

void Feed::warn_of(const std::exception& error) const {
  const auto* of_system = dynamic_cast<const std::system_error*>(&error);
  warn(fmt::format("cannot be {}: {}, and the run goes on without it", tree_ ? "fed" : "started",
                   of_system ? of_system->code().message() : error.what()));
}

void Feed::leave_rest_out() {
  const std::scoped_lock lock(mutex_);
  left_out_ += static_cast<int64_t>(lines_.size()) + !line_.empty();
  lines_.clear(), line_.clear();
  gone_ = true;
}

}  // namespace hexad::program
