// The one exception type for things that a user can mend. Its text answers: what, where, got, wanted, how to mend.
#pragma once
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace hexad {

// What kind of failure it is; the program's exit code follows from it (docs: 2 usage or config, 3 plugin, 4 worker).
enum class ErrorKind { config, plugin, worker, data, internal };

class Error : public std::runtime_error {
 public:
  // The message may quote what a stranger wrote: bytes that are not UTF-8 become U+FFFD, control characters but line
  // breaks and tabs are shown (said/printable.hpp), and secrets are left out (said/secret.hpp).
  Error(ErrorKind kind, const std::string& message);
  ErrorKind kind() const { return kind_; }
  int exit_code() const;

 private:
  ErrorKind kind_;
};

// The run is to end, and what it waited for is given up. Nothing is wrong: no Error.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// fail(ErrorKind::data, "{}:{}: ...", path, line): formats and throws.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hexad
