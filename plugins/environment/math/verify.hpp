// Is the answer in a response the right one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plugins/environment/math/expression.hpp"

namespace hexad::math {

// What was found in a text: the expression of the first candidate that could be read (null if none could), and the text
// of the first candidate that was tried.
struct Reading {
  Expression expression;
  std::string text;
};
// `plain` also reads numbers outside of LaTeX.
Reading read_answer(std::string_view text, bool plain);

// As math-verify's math_metric with NeMo-RL's settings: the gold answer in a \boxed{} of its own as LaTeX, the response
// as plain numbers and LaTeX. Any thread; takes bounded time and memory on any input, and is a function of its input
// alone. What exceeds a bound is wrong. `answer`, if not null: the text of the response's answer, "" if there is none.
bool verify(std::string_view gold, std::string_view response, std::string* answer = nullptr);

}  // namespace hexad::math
