#include "lib/text/conversation/message.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/text/template/chat_template.hpp"

using namespace hexad;
using namespace hexad::text;
using Json = nlohmann::ordered_json;

TEST_CASE("an answer is what the assistant says last, and no call of a tool") {
  CHECK(is_answer(message("assistant", "a")));
  CHECK(is_answer({{"role", "assistant"}, {"content", "a"}, {"tool_calls", nullptr}}));
  CHECK(is_answer({{"role", "assistant"}, {"content", "a"}, {"tool_calls", Json::array()}}));
  CHECK_FALSE(is_answer({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({Json::object()})}}));
  CHECK_FALSE(is_answer(message("user", "a")));
  CHECK(said(Json::parse(R"({"role": "user", "content": [{"type": "text", "text": "a"}, {"text": "b"}]})")) == "ab");
  CHECK(said({{"role", "assistant"}, {"content", nullptr}}) == "");
  CHECK(said({{"role", "assistant"}}) == "");
}

TEST_CASE("text in parts is rendered as parts, or as their text where a template takes no parts") {
  const Json parts = Json::parse(R"([{"role": "user", "content": [{"type": "text", "text": "a "},
                                                                  {"type": "text", "text": "b"}]}])");
  const auto rendered = [](const char* source, const Json& messages) {
    const ChatTemplate chat = ChatTemplate::parse(source, "t");
    return render_parts(messages, [&](const Json& shown) { return chat.render(shown, {}); });
  };
  CHECK(rendered("{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}", parts) ==
        "[a ][b]");
  CHECK(rendered("{% for m in messages %}{{ m.content }}{% endfor %}", parts) == "a b");
  CHECK(rendered("{% for m in messages %}{{ '<' + m.content + '>' }}{% endfor %}", parts) == "<a b>");
  // What is no text is the template's.
  const Json image = Json::parse(R"([{"role": "user", "content": [{"type": "image"}]}])");
  CHECK(rendered("{% for m in messages %}{{ m.content }}{% endfor %}", image) == "[{'type': 'image'}]");
  CHECK_THROWS_AS(rendered("{% for m in messages %}{{ '<' + m.content }}{% endfor %}", image), Error);
}
