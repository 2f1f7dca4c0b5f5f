// What strangers wrote, as it may stand on a terminal or in a log.
#include "lib/base/said/printable.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/log_format.hpp"
#include "lib/base/said/secret.hpp"

using namespace hexad;

TEST_CASE("what a terminal obeys is shown by number") {
  CHECK(printable("plain \u00e9 \u65e5\n\ttext") == "plain \u00e9 \u65e5\n\ttext");
  CHECK(printable("\x1b]0;x\x07\x1b[31m\r") == "\\x1b]0;x\\x07\\x1b[31m\\x0d");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\u009b2J\x7f\u0085") == "\\u009b2J\\u007f\\u0085");
  CHECK(printable("a\u202egpj.exe\u2066\u2028") == "a\\u202egpj.exe\\u2066\\u2028");
  CHECK(printable("\x9b\xff ok\xe2\x82") == "\\x9b\\xff ok\\xe2\\x82");  // no UTF-8: C1 to a terminal of Latin-1
  CHECK(printable("").empty());
}

TEST_CASE("a text within a line has no line breaks, and one below a line is no line of its own") {
  CHECK(one_line("a\nstep 9/9\r\n\tb") == "a\\nstep 9/9\\x0d\\n\\tb");
  CHECK(indented("a\nstep 9/9\n") == "a\n  step 9/9\n  ");
}

TEST_CASE("JSON that goes through it is the same JSON") {
  const nlohmann::json value = {{"a\u009b", "\x1b\x7f\u0080\u2029\u202e \u00e9\n"}};
  const std::string safe = printable(json_text(value));
  CHECK(safe.find("\u009b") == std::string::npos);
  CHECK(nlohmann::json::parse(safe) == value);
}

TEST_CASE("the message of an error is safe, and keeps its lines") {
  CHECK(std::string(Error(ErrorKind::data, "name\x1b[2J\u009b:\n  got\xff").what()) ==
        "name\\x1b[2J\\u009b:\n  got\uFFFD");
  CHECK(std::string(Error(ErrorKind::data, "http://u:pa55@h/x is down").what()) == "http://u:***@h/x is down");
}

TEST_CASE("no text passes for a line of the log, or has a secret") {
  std::ostringstream out;
  spdlog::logger log("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  log.set_formatter(log_format());
  keep_secret("kept-for-the-log-1");
  log.warn("reason\x1b[31m\n[2026-01-01 00:00:00.000] [test] [error] forged kept-for-the-log-1");
  const std::string text = out.str();
  CHECK(text.find("[test] [warning] reason\\x1b[31m\n  [2026-01-01") != std::string::npos);
  CHECK(text.ends_with("forged ***\n"));
}
