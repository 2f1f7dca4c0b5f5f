// A program that is fed with lines and answers none, by a thread of its own: whoever has a line never waits for it.
#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/process/tree.hpp"
#include "lib/program/notes.hpp"

namespace hexad::program {

struct FeedSettings {
  std::string who;                         // begins its lines in the log
  std::string name;                        // what the shell that runs it calls itself
  std::vector<std::string> command;        // the program first, found on PATH
  std::vector<std::string> withheld = {};  // variables of our environment that it is not given
  size_t most_bytes = size_t{32} << 20;    // of lines that wait; one that finds no room is left out
};

// The program reads its standard input to the end, and then ends by itself; what it writes goes to the log, up to a
// bound. It is started once. Where it cannot be (no program, no descriptor, no thread), ends before its input does or
// with another status than 0, or does not end in time, one warning says so, with the last line that it wrote. All that
// it has started ends with it, and when this process ends (process::Tree).
class Feed {
 public:
  // Throws for want of memory alone, as put() does.
  explicit Feed(FeedSettings settings);
  // Waits until the program has ended, which is at once where close() was not called, and warns of lines left out.
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // A line without its end. Any thread; never waits for the program.
  void put(std::string line);
  // The last line, which finds room always, and the end of its input. The program may take so long from now for what
  // waits and for its own end, and is killed then. Does not wait.
  void close(std::string last, std::chrono::milliseconds patience);

 private:
  using Clock = process::Clock;
  void work();
  void start();
  void feed_until_it_ends();
  bool next_line();
  void write_some();
  bool is_late() const;
  void warn(const std::string& what) const;
  void warn_of(const std::exception& error) const;
  std::string how_it_ended(const process::Exit& exit);
  void leave_rest_out();
  void wake();

  const FeedSettings settings_;
  std::atomic<int64_t> log_lines_;
  process::Descriptor woken_, wake_;  // a pipe: there is something to do

  mutable std::mutex mutex_;  // of this block
  std::deque<std::string> lines_;
  size_t bytes_ = 0;  // of lines_
  int64_t put_ = 0, left_out_ = 0;
  bool gone_ = false, closed_ = false;
  std::chrono::milliseconds patience_{0};
  Clock::time_point until_ = Clock::time_point::max();

  // The thread's own.
  Notes notes_;
  process::Descriptor input_;  // our end, which does not block
  std::optional<process::Tree> tree_;
  std::string line_;    // that is being written
  size_t written_ = 0;  // of line_
  std::thread thread_;
};

}  // namespace hexad::program
