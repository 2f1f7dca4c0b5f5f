// What a program writes on its standard error: all of it is read, so that it never waits, and little is kept.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/process/descriptor.hpp"

namespace hexad::program {

// Bytes that a person can read in a line of the log.
std::string readable(std::string_view text);

// Its lines go to the log, up to a bound, and the last bytes of all stay for messages. One thread.
class Notes {
 public:
  // `who` begins its lines in the log, of which there may be `log_lines` more (borrowed, shared).
  Notes(std::string who, std::atomic<int64_t>& log_lines) : who_(std::move(who)), log_lines_(log_lines) {}

  // The end to read, from now on.
  void open(process::Descriptor from);
  // -1 when it is closed.
  int descriptor() const { return from_.get(); }
  // What has come. `revents` of a poll: a program that has closed it is not polled again.
  void read(short revents = 0);
  // The last of all that came, trimmed; and its last line.
  std::string tail() const;
  std::string last_line() const;

 private:
  void add(std::string_view text);

  std::string who_;
  process::Descriptor from_;  // does not block
  std::string note_, tail_;   // an unfinished line; the last of all
  std::atomic<int64_t>& log_lines_;
};

}  // namespace hexad::program
