// A function in a Python file of somebody's own, as a setting names it.
#pragma once
#include <string>

namespace hexad::program {

struct PythonFunction {
  std::string file;
  std::string function = {};  // empty: the file's only one
};

// "rewards/mine.py", or "rewards/mine.py:score"; a colon that no name of Python follows is the file's.
PythonFunction python_function(const std::string& text);

// What keeps Python from reading the file, as the end of a sentence about it ("there is no such file: mine.py, did you
// mean 'mine2.py'?"). Empty: nothing that can be seen without starting Python.
std::string why_unreadable(const PythonFunction& named);

}  // namespace hexad::program
