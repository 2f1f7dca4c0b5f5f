#include "app/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/said/log_format.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::cli {
namespace {

constexpr size_t kMostWaiting = size_t{64} << 10;

// A full disk with how to mend it, where the message does not say so already.
std::string mended(std::string what) {
  if (tells_of_full_disk(what) && what.find("Free space") == std::string::npos)
    what += ". Free space there, or name another place";
  return what;
}

std::string text_of(const std::filesystem::filesystem_error& error) {
  return error.path1().empty() ? error.what() : error.path1().string() + ": " + error.code().message();
}

int ends_with(const char* name, const std::string& what, int status) {
  std::fprintf(stderr, "%s: %s\n", name, indented(without_secrets(mended(what))).c_str());
  return status;
}

}  // namespace

int run_program(const char* name, const std::function<int()>& body) {
  const int kData = Error(ErrorKind::data, "").exit_code(), kInternal = Error(ErrorKind::internal, "").exit_code();
  open_standard_streams();
  const StandardOutput output;
  try {
    const int status = body();
    if (std::cout) std::cout.flush();  // else `body` knows, and the status is its answer
    return status;
  } catch (const Error& error) {
    return ends_with(name, error.what(), error.exit_code());
  } catch (const std::filesystem::filesystem_error& error) {
    return ends_with(name, text_of(error), kData);
  } catch (const std::bad_alloc&) {
    return ends_with(name, "not enough memory: a number or a length asks for more than there is", kData);
  } catch (const std::length_error& error) {
    return ends_with(name, std::string("a number or a length is too large: ") + error.what(), kData);
  } catch (const std::ios_base::failure&) {  // more was written after an Error that `body` took for another's
    return ends_with(name, output.failure(), kData);
  } catch (const std::system_error& error) {
    return ends_with(name, error.what(), kInternal);
  } catch (const std::exception& error) {
    return ends_with(name, std::string("internal error: ") + error.what(), kInternal);
  }
}

void log_to_standard_error(const char* name) {
  auto log = spdlog::stderr_logger_mt(name);
  log->set_formatter(log_format());
  spdlog::set_default_logger(std::move(log));
}

void print_raw() {
  if (auto* output = dynamic_cast<StandardOutput*>(std::cout.rdbuf())) output->pass_raw();
}

void open_standard_streams() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
    // It gets the lowest free number, and those below it are taken.
    [[maybe_unused]] const int same = ::open("/dev/null", standard == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

StandardOutput::StandardOutput() : before_(std::cout.rdbuf(this)) { std::cout.exceptions(std::ios::badbit); }

StandardOutput::~StandardOutput() {
  std::cout.exceptions(std::ios::goodbit);
  std::cout.rdbuf(before_);
}

StandardOutput::int_type StandardOutput::overflow(int_type next) {
  if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
  const char byte = traits_type::to_char_type(next);
  xsputn(&byte, 1);
  return next;
}

std::streamsize StandardOutput::xsputn(const char* text, std::streamsize size) {
  const std::string_view more(text, static_cast<size_t>(size));
  waiting_ += more;
  const size_t line = waiting_.rfind('\n');
  if (line != waiting_.npos)
    write_front(line + 1);
  else if (waiting_.size() >= kMostWaiting)
    write_front(utf8_front(waiting_, waiting_.size() - 1).size());  // the last character may be whole only later
  return size;
}

int StandardOutput::sync() {
  write_front(waiting_.size());
  return 0;
}

// So many bytes of what waits. What cannot be written is not tried again.
void StandardOutput::write_front(size_t size) {
  std::string rest = waiting_.substr(size), text = std::exchange(waiting_, {});
  text.resize(size);
  if (!raw_) text = printable(text);
  write(text.data(), text.size());
  waiting_ = std::move(rest);
}

void StandardOutput::write(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(STDOUT_FILENO, text, size);
    if (count >= 0) {
      text += count, size -= static_cast<size_t>(count);
      continue;
    }
    pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
    if (errno == EINTR || (errno == EAGAIN && ::poll(&ready, 1, -1) >= 0)) continue;
    failure_ = fmt::format("standard output: cannot be written: {}; what it has is not whole", std::strerror(errno));
    throw Error(ErrorKind::data, failure_);
  }
}

}  // namespace hexad::cli
