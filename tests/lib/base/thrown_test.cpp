// What is said of exceptions that strangers throw.
#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "lib/base/said/thrown.hpp"

using namespace hexad;

namespace {

template <typename Throw>
std::string text_of(Throw&& thrower) {
  try {
    thrower();
  } catch (...) {
    return thrown_text();
  }
  return "(nothing was thrown)";
}

struct OwnType {};
struct WithoutText : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

[[noreturn]] void nest(int levels) {
  if (levels == 0) throw std::runtime_error("no such file");
  try {
    nest(levels - 1);
  } catch (...) {
    std::throw_with_nested(std::runtime_error("level " + std::to_string(levels)));
  }
}

}  // namespace

TEST_CASE("an exception is told by its text, or by what was thrown as a text") {
  CHECK(text_of([] { throw std::runtime_error("the table is empty"); }) == "the table is empty");
  CHECK(text_of([] { throw std::string("a text"); }) == "a text");
  CHECK(text_of([] { throw "a literal"; }) == "a literal");
}

TEST_CASE("what has no text is told by its type") {
  CHECK(text_of([] { throw 42; }) == "an exception of type int");
  CHECK(text_of([] { throw OwnType(); }) == "an exception of type (anonymous namespace)::OwnType");
  CHECK(text_of([] { throw WithoutText(); }) == "an exception of type (anonymous namespace)::WithoutText");
  CHECK(text_of([] { throw std::runtime_error(""); }) == "an exception of type std::runtime_error");
  CHECK(text_of([] { throw std::string(); }).starts_with("an exception of type std::"));
}

TEST_CASE("the reasons that an exception carries are told with it, as many and as long as is of use") {
  CHECK(text_of([] { nest(2); }) == "level 2: level 1: no such file");
  CHECK(text_of([] { nest(100); }).ends_with("level 84: ..."));
  CHECK(text_of([] { throw std::runtime_error(std::string(100'000, 'x')); }) == std::string(4096, 'x') + " ...");
}
