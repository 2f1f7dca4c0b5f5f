// Which text is whose, of templates that write a turn otherwise where others follow.
#include "core/data/dataset/turns.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::data;
using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

namespace {

// What a template writes for message i of these.
using Write = std::string (*)(const Json& messages, size_t i);

Texts turns(Write write, const Json& messages, const std::string& generation_prompt = "") {
  TextTools tools;
  tools.render = [&](const Json& shown, const RenderOptions& options) {
    std::string text;
    for (size_t i = 0; i < shown.size(); ++i) text += write(shown, i);
    return options.add_generation_prompt ? text + generation_prompt : text;
  };
  return turn_texts(messages, {.add_generation_prompt = !generation_prompt.empty(), .tools = {}}, tools);
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
