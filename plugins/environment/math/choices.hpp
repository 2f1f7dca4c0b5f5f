// Answers that are compared as text: letters of multiple choice, and DAPO's rule.
#pragma once
#include <string>
#include <string_view>

namespace hexad::math {

// `answer`, if not null: set to the response's answer as it is compared, and left where there is none.

// "Answer: C" in the response, Markdown and LaTeX aside (NeMo-RL's english_multichoice).
bool english_choice_is(std::string_view gold, std::string_view response, std::string* answer = nullptr);
// The same in some thirty languages, letters A to D of three scripts (multilingual_multichoice).
bool multilingual_choice_is(std::string_view gold, std::string_view response, std::string* answer = nullptr);
// The last "Answer: ..." among the last 300 characters, normalized as Minerva does, is the gold answer, normalized
// (dapo_math_verify; Lewkowycz et al. 2022, appendix G).
bool dapo_answer_is(std::string_view gold, std::string_view response, std::string* answer = nullptr);

}  // namespace hexad::math
