// A conversation with a model: which messages it sees, and what lines that begin with / do.
#include "app/inference/chat.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "lib/base/error.hpp"
#include "tests/support/toy/program.hpp"

using namespace hexad;
using namespace hexad::inference;
using Json = nlohmann::ordered_json;
using toy::Ended;

namespace {

struct Talk {
  std::string out, said;
  int64_t answers = 0;
  std::vector<Json> seen;  // by the model, a list of messages for each answer
};

// The answer to a line is "re: LINE"; a line "full" is one too many.
Talk talk(const std::string& lines, const ChatInput& input = {}) {
  Talk result;
  std::istringstream in(lines);
  std::ostringstream out, said;
  const Answer answer = [&](const Json& messages) -> std::string {
    const std::string text = messages.back()["content"];
    if (text == "full") fail(ErrorKind::data, "the conversation has \x1b[31m9 tokens");
    if (text == "lost") fail(ErrorKind::worker, "rank 0 is gone");
    result.seen.push_back(messages);
    return "re: " + text;
  };
  result.answers = converse(in, out, said, input, answer);
  result.out = out.str(), result.said = said.str();
  return result;
}

Json message(const char* role, const char* content) { return {{"role", role}, {"content", content}}; }

std::string model() { return (toy::source_dir() / "configs/quickstart_model").string(); }

std::vector<std::string> toy_chat(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"chat", model(), "policy.generation.backend=toy_generator",
                                        "policy.generation.max_new_tokens=3",
                                        fmt::format("plugins.paths=[{}]", toy::plugins().string())};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("the model sees the whole conversation, its own answers among it") {
  const Talk run = talk("one\n\n  two \r\n", {.system = "be brief"});
  CHECK(run.out == "re: one\nre: two\n");
  CHECK(run.said.empty());  // nobody types
  CHECK(run.answers == 2);
  REQUIRE(run.seen.size() == 2);
  CHECK(run.seen[0] == Json{message("system", "be brief"), message("user", "one")});
  CHECK(run.seen[1] == Json{message("system", "be brief"), message("user", "one"), message("assistant", "re: one"),
                            message("user", "two")});
}

TEST_CASE("/reset, /system, /quit, a text that begins with /, and what is no command") {
  const Talk run =
      talk("one\n/reset\ntwo\n/system  be kind \nthree\n/reset\n//four\n/system\n/help\nfive\n/quit\nsix\n");
  REQUIRE(run.seen.size() == 5);
  CHECK(run.seen[1] == Json::array({message("user", "two")}));
  CHECK(run.seen[2] == Json{message("system", "be kind"), message("user", "three")});
  CHECK(run.seen[3] == Json{message("system", "be kind"), message("user", "/four")});
  CHECK(run.seen[4] == Json::array({message("user", "five")}));
  CHECK(run.said ==
        "/help is no command: /reset forgets the conversation, /system TEXT sets what the model is told "
        "first, /quit or Ctrl-D ends; a line that begins with // is a text\n");
  CHECK(run.answers == 5);
}

TEST_CASE("a line that the model cannot take is taken back on a terminal, and ends the rest of a pipe") {
  const Talk run = talk("one\nfull\ntwo\n", {.terminal = true});
  CHECK(run.answers == 2);
  CHECK(run.seen[1].size() == 3);
  CHECK(run.said.find("> the conversation has \\x1b[31m9 tokens\n> ") != std::string::npos);
  CHECK_THROWS_WITH_AS(talk("one\n\nfull\ntwo\n"), doctest::Contains("line 3: the conversation has"), Error);
  CHECK_THROWS_WITH_AS(talk("lost\n", {.terminal = true}), "rank 0 is gone", Error);
}

TEST_CASE("hexad chat, from a pipe: an answer for each line") {
  const Ended run = toy::run(toy_chat(), "ab\n/reset\ncd\n");
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 2);
  CHECK_FALSE(plugin_test::contains(run.err, "> "));  // nobody is asked to type
  CHECK(toy::run(toy_chat(), "").out.empty());
}

TEST_CASE("what hexad chat cannot do") {
  const auto ends = [](const std::vector<std::string>& arguments, const std::string& input, const std::string& says) {
    const Ended run = toy::run(arguments, input);
    CHECK(run.code == 2);
    CHECK_MESSAGE(plugin_test::contains(run.err, says), "got: " << run.err);
  };
  ends(toy_chat({"++policy.tokenizer.chat_template=null"}), "a\n", "has no chat template, so that nothing says how");
  ends(toy_chat({"policy.max_total_sequence_length=8"}), "a\nabcdefgh\n",
       "of at most 8 with its answer (policy.max_total_sequence_length): /reset begins another one");
  ends({"chat", "/nowhere"}, "", "no such directory: '/nowhere'");
}
