// What every program here does around its work: standard streams, and what an exception becomes.
#pragma once
#include <functional>
#include <streambuf>
#include <string>

namespace hexad::cli {

// Runs `body` and returns the exit status: its own; of an exception that of its kind, after a line on standard error.
// What `body` writes to std::cout is written when this returns, or the status is not 0. Call it first in main.
int run_program(const char* name, const std::function<int()>& body);

// Lines of the log go there without colours, as lib/base/said/log_format.hpp makes them: standard output is for
// answers.
void log_to_standard_error(const char* name);

// From now on std::cout is written as it is: a text that somebody asked for, into a file or a pipe.
void print_raw();

// A standard descriptor (0 to 2) that is closed would become the next file that is opened, and what is printed go
// there. Gives it to /dev/null the wrong way round: reading or writing it fails as before.
void open_standard_streams();

// Stands behind std::cout as long as it lives, and writes line by line, what a terminal would obey shown by number
// (lib/base/said/printable.hpp) until pass_raw() is called. Output that cannot be written throws Error(data) out of the
// stream, with the reason.
class StandardOutput : public std::streambuf {
 public:
  StandardOutput();
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  void pass_raw() { raw_ = true; }

  const std::string& failure() const { return failure_; }  // the Error's text; empty: there was none

 protected:
  int_type overflow(int_type next) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  void write_front(size_t size);
  void write(const char* text, size_t size);

  std::streambuf* const before_;
  std::string waiting_, failure_;
  bool raw_ = false;
};

}  // namespace hexad::cli
