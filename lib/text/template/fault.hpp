// What goes wrong inside a template, before it is known at which line: the evaluator adds origin and line.
#pragma once
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace hexad::text::jinja {

class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void fault(fmt::format_string<Args...> format, Args&&... args) {
  throw Fault(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hexad::text::jinja
