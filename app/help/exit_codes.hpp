// What the program's exit status says: one table for `hexad help exit-codes`, the manual pages and docs/exit_codes.md.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace hexad::help {

struct ExitCode {
  int code;
  std::string_view name;     // "wrong usage, configuration, model or data"
  std::string_view meaning;  // and what to do
};

// In ascending order. The numbers of errors are lib/base/error.cpp's.
std::span<const ExitCode> exit_codes();

std::string exit_codes_text();      // the topic
std::string exit_codes_markdown();  // the page

}  // namespace hexad::help
