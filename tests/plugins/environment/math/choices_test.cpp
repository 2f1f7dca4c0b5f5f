#include "plugins/environment/math/choices.hpp"

#include <doctest/doctest.h>

using namespace hexad::math;

TEST_CASE("english choices") {
  CHECK(english_choice_is("B", "Answer: B"));
  CHECK(english_choice_is("B", "**Answer:** $\\boxed{B}$"));
  CHECK(english_choice_is("$\\text{B}$", "answer :B"));
  CHECK(english_choice_is("B", "Answer: A\nAnswer: B") == false);  // the first one counts
  CHECK_FALSE(english_choice_is("B", "Answer: b"));
  CHECK_FALSE(english_choice_is("B", "B"));
  CHECK_FALSE(english_choice_is("", ""));
}

TEST_CASE("choices in other languages and scripts") {
  CHECK(multilingual_choice_is("A", "Antwort: A"));
  CHECK(multilingual_choice_is("C", "答案：C"));
  CHECK(multilingual_choice_is("D", "الإجابة: د"));
  CHECK(multilingual_choice_is("B", "উত্তর: ব"));
  CHECK(multilingual_choice_is("B", "回答：Ｂ"));
  // The word that comes first in the list decides, not the one that comes first in the text.
  CHECK(multilingual_choice_is("A", "Antwort: B\nAnswer: A"));
  CHECK_FALSE(multilingual_choice_is("A", "Answer: E"));
  CHECK_FALSE(multilingual_choice_is("A", "Answer A"));
}

TEST_CASE("DAPO compares normalized text") {
  CHECK(dapo_answer_is("1000", "Answer: 1,000"));
  CHECK(dapo_answer_is("\\frac{1}{2}", "answer: $\\frac12$"));
  CHECK(dapo_answer_is("5", "Answer: x = 5 cm"));
  CHECK(dapo_answer_is("\\sqrt{2}", "Answer: \\sqrt2"));
  CHECK(dapo_answer_is("7", "Answer: 6\nAnswer: \\boxed{7}"));
  CHECK_FALSE(dapo_answer_is("0.5", "Answer: \\frac12"));
  CHECK_FALSE(dapo_answer_is("7", "7"));
  CHECK_FALSE(dapo_answer_is("7", "Answer: 7\n" + std::string(300, '.')));  // too far from the end
}
