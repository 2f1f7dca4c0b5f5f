// How a setting names a function of a Python file.
#include "lib/program/python_file.hpp"

#include "tests/support/toy/toy.hpp"

using hexad::program::python_function;
using hexad::program::PythonFunction;
using hexad::program::why_unreadable;

TEST_CASE("a file, and behind a colon the name of a function") {
  const auto parts = [](const std::string& text) {
    const PythonFunction named = python_function(text);
    return named.file + " | " + named.function;
  };
  CHECK(parts("mine.py") == "mine.py | ");
  CHECK(parts("a/mine.py:score_2") == "a/mine.py | score_2");
  CHECK(parts("a/mine.py:\u00e9cart") == "a/mine.py | \u00e9cart");
  for (const char* whole : {"C:/mine.py", "a:b/mine.py", "mine.py:", "mine.py:2nd", "mine.py:a.b"})
    CHECK(parts(whole) == std::string(whole) + " | ");
}

TEST_CASE("what can be seen without Python of a file that it cannot read") {
  const toy::TempDir dir;
  const std::string mine = dir.write("mine.py", "").string();
  CHECK(why_unreadable({mine}) == "");
  CHECK(why_unreadable({(dir / "mien.py").string()}) ==
        "there is no such file: " + (dir / "mien.py").string() + ", did you mean '" + mine + "'?");
  CHECK(why_unreadable({(dir / "else.py").string()}) == "there is no such file: " + (dir / "else.py").string());
  CHECK(why_unreadable({dir.path().string()}) == dir.path().string() + " is no file");
  const std::string text = dir.write("mine.txt", "").string();
  CHECK(why_unreadable({text}) == text + " is no Python file: its name has to end with .py");
  toy::fs::permissions(mine, toy::fs::perms::none);
  if (::geteuid() != 0) CHECK(why_unreadable({mine}) == mine + " cannot be read");
}
