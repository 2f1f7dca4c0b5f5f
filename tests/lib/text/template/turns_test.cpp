// Which text is whose, of templates that write a turn otherwise where others follow.
#include "lib/text/template/turns.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::text;
using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

namespace {

// What a template writes for message i of these.
using Write = std::string (*)(const Json& messages, size_t i);

Texts turns(Write write, const Json& messages, const std::string& generation_prompt = "") {
  return turn_texts(messages, !generation_prompt.empty(), [&](const Json& shown, bool prompt) {
    std::string text;
    for (size_t i = 0; i < shown.size(); ++i) text += write(shown, i);
    return prompt ? text + generation_prompt : text;
  });
}

Json said(const std::string& role, const std::string& content) { return {{"role", role}, {"content", content}}; }

std::string text_of(const Json& message) {
  const Json content = message.value("content", Json());
  if (content.is_array()) return content.back().at("text");
  return content.is_string() ? content.get<std::string>() : "";
}

// Qwen3's: answers lose their reasoning where a question follows; calls of tools stand behind the content; results of
// tools that follow each other are one turn.
std::string forgetful(const Json& messages, size_t i) {
  const Json& message = messages[i];
  const auto role_of = [&](size_t at) { return at < messages.size() ? messages[at].at("role") : Json(); };
  std::string text = text_of(message);
  if (role_of(i) == "tool") return "[" + text + "]" + (role_of(i + 1) == "tool" ? "" : "/T ");
  bool question_follows = false;
  for (size_t k = i + 1; k < messages.size(); ++k) question_follows |= role_of(k) == "user";
  const size_t thought = text.find("</think>");
  if (role_of(i) == "assistant" && question_follows && thought != text.npos) text = text.substr(thought + 8);
  if (message.contains("tool_calls")) text += "{call}";
  return role_of(i) == "user" ? "U:" + text + "/U " : "A:" + text + "/A ";
}

std::string refusal(Write write, const Json& messages) {
  try {
    turns(write, messages);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an answer that loses its reasoning stands once, as the whole conversation has it") {
  const Json messages = {said("user", "q1"), said("assistant", "<think>aaaa</think>BBBB"), said("user", "q2"),
                         said("assistant", "<think>c</think>CC")};
  CHECK(turns(forgetful, messages) == Texts{"U:q1/U ", "A:BBBB/A ", "U:q2/U ", "A:<think>c</think>CC/A "});
  CHECK(turns(forgetful, messages, "A:") == Texts{"U:q1/U A:", "BBBB/A ", "U:q2/U A:", "<think>c</think>CC/A "});
  // A prompt that the template does not write before this answer is no part of the conversation.
  CHECK(turns(forgetful, messages, "A:<none>")[0] == "U:q1/U ");
}

TEST_CASE("calls and results of tools are told apart, with an answer that loses its reasoning too") {
  Json call = said("assistant", "<think>a</think>");
  call["tool_calls"] = Json::array({Json{{"name", "f"}}});
  Json silent = call;
  silent["content"] = nullptr;
  Json parts = said("user", "");
  parts["content"] = Json::array({Json{{"type", "text"}, {"text", "q2"}}});
  const Json messages = {said("user", "q1"), call,  said("tool", "r1"),       said("tool", "r2"), silent,
                         said("tool", "r3"), parts, said("assistant", "done")};
  CHECK(turns(forgetful, messages) ==
        Texts{"U:q1/U ", "A:{call}/A ", "[r1", "][r2]/T ", "A:{call}/A ", "[r3]/T ", "U:q2/U ", "A:done/A "});
}

TEST_CASE("what closes the last turn alone is no part of the others") {
  const auto closes_last = [](const Json& messages, size_t i) {
    return "<" + text_of(messages[i]) + (i + 1 == messages.size() ? "$" : "");
  };
  CHECK(turns(closes_last, {said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")}) ==
        Texts{"<a", "<b", "<c", "<d$"});
}

TEST_CASE("a turn that cannot be found is an error") {
  const auto last_alone = [](const Json& messages, size_t i) {
    return i + 1 == messages.size() ? text_of(messages[i]) : std::string();
  };
  const Json messages = {said("user", "a"), said("assistant", "b")};
  CHECK(refusal(last_alone, messages)
            .find("messages[0]: the chat template writes this turn otherwise where others "
                  "follow, and it cannot be found") == 0);
  // Calls behind the content, and another end of the turn: nothing tells where the calls end.
  const auto open_calls = [](const Json& all, size_t i) {
    return text_of(all[i]) + (all[i].contains("tool_calls") ? "{call}" : "") + (i + 1 == all.size() ? "$" : ";");
  };
  Json call = said("assistant", "b");
  call["tool_calls"] = Json::array({1});
  CHECK(refusal(open_calls, {said("user", "a"), call, said("user", "c")}).find("messages[1]: ") == 0);
}

// Qwen3.5's and Llama 3.1's (with tools): no conversation without a question.
TEST_CASE("a template that refuses a system prompt alone trains on what the assistant says") {
  const auto wants_question = [](const Json& messages, size_t i) {
    if (std::ranges::none_of(messages, [](const Json& message) { return message.at("role") == "user"; }))
      fail(ErrorKind::data, "No user query found in messages.");
    return forgetful(messages, i);
  };
  CHECK(turns(wants_question, {said("system", "s"), said("user", "q"), said("assistant", "a")}) ==
        Texts{"", "A:s/A U:q/U ", "A:a/A "});
  // The other way round nothing tells where the answer begins.
  const std::string refused =
      refusal(wants_question, {said("system", "s"), said("assistant", "a"), said("user", "q"), said("user", "r")});
  CHECK(refused == "No user query found in messages.");
}

TEST_CASE("reasoning that a turn does not show") {
  CHECK(drops_reasoning(said("assistant", "<think>\nab\n</think>\n\nc"), "A:c/A "));
  CHECK(drops_reasoning(said("assistant", "ab</think>c"), "A:c/A "));  // the opening mark stood in the prompt
  CHECK_FALSE(drops_reasoning(said("assistant", "<think>\nab\n</think>\n\nc"), "A:<think>ab</think>c/A "));
  CHECK_FALSE(drops_reasoning(said("assistant", "<think>\n\n</think>\n\nc"), "A:c/A "));
  CHECK_FALSE(drops_reasoning(said("assistant", "c"), "A:c/A "));
  Json apart = said("assistant", "c");
  apart["reasoning_content"] = "ab";
  CHECK(drops_reasoning(apart, "A:c/A "));
  CHECK_FALSE(drops_reasoning(apart, "A:<think>ab</think>c/A "));
  apart["reasoning_content"] = nullptr;
  apart["content"] = nullptr;
  CHECK_FALSE(drops_reasoning(apart, "A:/A "));
}
