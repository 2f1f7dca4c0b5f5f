// Faults of responses that make a reward 0.
#include "core/algorithm/reward/penalty.hpp"

#include "tests/support/toy/toy.hpp"

using namespace hexad;
using namespace hexad::algorithm;

namespace {

const Tags kTags = {"<think>", "</think>"};
const std::string kPlain = "<|user|>2+2<|assistant|>", kWaits = kPlain + "<think>\n",
                  kClosed = kPlain + "<think>\n\n</think>\n\n";

bool malformed(const std::string& prompt, const std::string& response) {
  return faults_of(kTags, prompt, response).malformed_think_tag;
}

}  // namespace

TEST_CASE("tags of reasoning fit each other, and what the prompt has of them") {
  for (const char* response : {"4", "<think>two and two</think>4", " <think></think> 4"})
    CHECK_FALSE(malformed(kPlain, response));
  for (const char* response :
       {"two and two</think>4", "<think>two and two", "a<think>b</think>c", "<think>a</think><think>b</think>c",
        "</think><think>", "<think><think>a</think></think>"})
    CHECK_MESSAGE(malformed(kPlain, response), response);
  CHECK_FALSE(malformed(kWaits, "two and two</think>4"));
  for (const char* response : {"4", "<think>a</think>4", "a</think>b</think>4"})
    CHECK_MESSAGE(malformed(kWaits, response), response);
  CHECK_FALSE(malformed(kClosed, "4"));
  for (const char* response : {"a</think>4", "<think>a</think>4"})
    CHECK_MESSAGE(malformed(kClosed, response), response);
  CHECK(malformed("</think>", "4"));
  CHECK(malformed("<think><think>", "4</think>"));
}

TEST_CASE("an answer is what stands behind the reasoning") {
  const auto empty = [](const std::string& prompt, const std::string& response) {
    return faults_of(kTags, prompt, response).empty_final_answer;
  };
  CHECK_FALSE(empty(kPlain, "4"));
  CHECK(empty(kPlain, " \n"));
  CHECK(empty(kPlain, "<think>two and two</think> \n"));
  CHECK_FALSE(empty(kPlain, "<think>two and two</think>4"));
  CHECK(empty(kWaits, "two and two"));  // was cut off in its reasoning
  CHECK_FALSE(empty(kWaits, "two and two</think>4"));
}

TEST_CASE("reasoning that is given once more is no answer") {
  const auto twice = [](const std::string& prompt, const std::string& response) {
    return faults_of(kTags, prompt, response).duplicated_reasoning;
  };
  CHECK(twice(kPlain, "<think> four </think>\nfour"));
  CHECK(twice(kWaits, "four</think>four"));
  CHECK_FALSE(twice(kPlain, "<think>four</think>4"));
  CHECK_FALSE(twice(kPlain, "<think></think>"));
  CHECK_FALSE(twice(kPlain, "four"));
}
