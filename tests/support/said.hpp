// What was said: the log, and a check of a text that shows it.
#pragma once
#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

// `part` is in `text`, which is made once, and outside of doctest: a CHECK within a message would stop it.
#define SAYS(text, part)                                       \
  do {                                                         \
    const auto said = std::string(text);                       \
    CHECK_MESSAGE(said.find(part) != std::string::npos, said); \
  } while (false)

namespace test_support {

// What is logged while it lives.
class Log {
 public:
  Log() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  std::string text() const { return lines_.str(); }

 private:
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream lines_;
};

}  // namespace test_support
