#include "lib/http/client/event_stream.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "lib/http/client/error_text.hpp"

using namespace hexad::http::client;

TEST_CASE("events come whole, however the bytes are cut") {
  const std::string stream = ": ping\n\ndata: one\r\n\r\ndata:two\ndata: lines\n\nevent: x\ndata: [DONE]\n\ndata: cut";
  for (size_t step = 1; step <= stream.size(); ++step) {
    EventStream events;
    std::vector<std::string> seen;
    for (size_t at = 0; at < stream.size(); at += step) {
      events.feed(std::string_view(stream).substr(at, step), [&](std::string_view data) {
        seen.emplace_back(data);
        return true;
      });
    }
    CHECK(seen == std::vector<std::string>{"one", "two\nlines", "[DONE]"});
  }
}

TEST_CASE("an event without an end is given up") {
  const std::string part(size_t{1} << 20, 'x');
  const auto fed = [&](const std::string& each) {
    EventStream events;
    size_t bytes = 0;
    try {
      for (; bytes < size_t{200} << 20; bytes += each.size()) events.feed(each, [](std::string_view) { return true; });
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()) == "an event of the stream is longer than 64 MiB");
    }
    return bytes;
  };
  CHECK(fed(part) <= size_t{64} << 20);                    // a line
  CHECK(fed("data: " + part + "\n") <= size_t{64} << 20);  // lines of one event
  CHECK(fed(": " + part + "\n") >= size_t{200} << 20);     // comments are forgotten
}

TEST_CASE("what servers say of an error is found") {
  CHECK(error_text(R"({"error": {"message": "too long", "code": 400}})") == "too long");
  CHECK(error_text(R"({"detail": "Not Found"})") == "Not Found");
  CHECK(error_text("Internal\nServer Error") == "Internal Server Error");
  CHECK(error_text(std::string(1000, 'x')).size() == 303);
}
