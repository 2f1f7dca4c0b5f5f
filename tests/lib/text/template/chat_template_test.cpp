#include "lib/text/template/chat_template.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

using hexad::text::ChatOptions;
using hexad::text::ChatTemplate;
using Json = nlohmann::ordered_json;

namespace {

const Json hello = Json::array({{{"role", "user"}, {"content", "Hi"}}});

std::string render(const std::string& source, const ChatOptions& options = {}, const Json& messages = hello) {
  return ChatTemplate::parse(source, "model.jinja").render(messages, options);
}

// The message of the error that parsing or rendering gives.
std::string failure(const std::string& source, const ChatOptions& options = {}, const Json& messages = hello) {
  try {
    return "rendered: " + render(source, options, messages);
  } catch (const hexad::Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a template sees messages, tools, tokens and further variables") {
  ChatOptions options;
  options.special_tokens["bos_token"] = "<s>";
  options.add_generation_prompt = true;
  options.extra = {{"enable_thinking", false}};
  CHECK(render("{{ bos_token }}{{ messages[0].content }}{{ add_generation_prompt }}{{ enable_thinking }}", options) ==
        "<s>HiTrueFalse");
  CHECK(render("{{ eos_token is defined }} {{ tools }} {{ documents }}") == "False None None");
  options.extra["documents"] = Json::array({"d"});
  CHECK(render("{{ documents }}", options) == "['d']");
  for (const char* name : {"messages", "tools", "add_generation_prompt"}) {
    ChatOptions twice;
    twice.extra = {{name, false}};
    CHECK(failure("{{ messages }}", twice) == "model.jinja: '" + std::string(name) +
                                                  "' is given twice: by the conversation, and as a further template "
                                                  "variable (chat_template_kwargs)");
  }
  options.tools = Json::array({{{"name", "f"}, {"a", 1}}});
  CHECK(render("{{ tools | tojson }}", options) == R"([{"name": "f", "a": 1}])");
}

TEST_CASE("numbers of a data file are those that Python reads and writes") {
  ChatOptions options;
  options.tools = hexad::parse_data(R"([{"n": 12345678901234567890123, "x": 1.10, "y": 1e5, "z": -0}])", "d");
  CHECK(render("{{ tools | tojson }}", options) ==
        R"([{"n": 12345678901234567890123, "x": 1.1, "y": 100000.0, "z": 0}])");  // json.dumps(json.loads(...))
}

TEST_CASE("an argument is given once, and in Jinja's order") {
  const std::string macro = "{% macro m(a=1, b=2) %}{{ a }}{{ b }}{% endmacro %}";
  CHECK(render(macro + "{{ m(3, b=4) }}{{ m(*[5], **{'b': 6}) }}{{ m(b=7, *[8]) }}") == "345687");
  for (const char* call : {"m(a=1, a=2)", "[1]|join(d='a', d='b')", "1 is divisibleby(num=1, num=2)", "dict(a=1, a=2)"})
    CHECK(failure(macro + "{{ " + call + " }}").find("model.jinja:1: keyword argument repeated: ") == 0);
  CHECK(failure(macro + "\n{{ m(a=1,\n b=2, a=3) }}") == "model.jinja:2: keyword argument repeated: a");
  for (const char* call : {"m(*[1], *[2])", "m(**{}, **{})", "m(**{}, a=1)", "m(**{}, *[1])"})
    CHECK(failure(macro + "{{ " + call + " }}") == "model.jinja:1: invalid syntax for function call expression");
  CHECK(failure(macro + "{{ m(a=1, **{'a': 2}) }}").find("got multiple values for keyword argument 'a'") !=
        std::string::npos);
  CHECK(failure("{% macro m(a, a) %}{% endmacro %}") == "model.jinja:1: duplicate argument 'a' in macro definition");
  CHECK(failure(macro + "{{ m(1, a=2) }}").find("got multiple values for argument 'a'") != std::string::npos);
}

TEST_CASE("messages are prepared as transformers prepares them") {
  const Json messages = Json::array({{{"role", "assistant"}, {"content", nullptr}, {"thinking", "hm"}}});
  CHECK(render("{{ messages[0].content is defined }} {{ messages[0].reasoning_content }}", {}, messages) == "False hm");
  const Json reasoning = Json::array({{{"role", "assistant"}, {"reasoning", "so"}}});
  CHECK(render("{{ messages[0].reasoning_content }} {{ messages[0].thinking }}", {}, reasoning) == "so so");
}

TEST_CASE("white space: blocks take their line, a sign takes more") {
  CHECK(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n") == "a\nb\nc");
  CHECK(render("a  {%- if true -%}  b  {%- endif -%}  c") == "abc");
  CHECK(render("a\n  {%+ if true %}\nb{% endif +%}\nc") == "a\n  b\nc");
  CHECK(render("{{ 1 }}\n  {{- 2 }}") == "12");
  CHECK(render("{% raw %}{{ x }}{% endraw %}") == "{{ x }}");
}

TEST_CASE("scopes: a loop's variables end with it, a namespace outlives it") {
  CHECK(render("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}") == "231");
  CHECK(render("{% set n = namespace(x=1) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}") == "4");
  CHECK(render("{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(b=0, a=9) }}") == "1290");
  CHECK(render("{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}") == "123");
}

TEST_CASE("text is made of characters, not bytes") {
  CHECK(render("{{ 'é東😀'[1] }}{{ 'é東😀'[::-1] }}{{ 'é東😀' | length }}{{ 'straße' | upper }}") == "東😀東é3STRASSE");
  CHECK(render("{{ 'é東😀' | tojson(ensure_ascii=true) }}") == R"("\u00e9\u6771\ud83d\ude00")");
}

TEST_CASE("continue_final_message ends the text inside the last message") {
  ChatOptions options;
  options.continue_final_message = true;
  const Json messages =
      Json::array({{{"role", "user"}, {"content", "Q"}}, {{"role", "assistant"}, {"content", "The answer is "}}});
  const std::string source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}";
  CHECK(render(source, options, messages) == "<user>Q</><assistant>The answer is ");
  const std::string trimmed = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</>{% endfor %}";
  CHECK(render(trimmed, options, messages) == "<user>Q</><assistant>The answer is");
  CHECK(failure("{{ messages[0].content }}", options, messages) ==
        "model.jinja: continue_final_message is set, but the final message does not appear in the text as it is");
  CHECK(failure("{{ messages[0].role }}", options, messages) ==
        "model.jinja: continue_final_message is set, but the template does not read \"content\"");
  CHECK(failure(source, options, Json::array({{{"role", "user"}}})) ==
        "model.jinja: continue_final_message is set, but the final message has no \"content\"");
  CHECK(failure(source, options, Json::array({{{"role", "user"}, {"content", Json::array()}}})) ==
        "model.jinja: continue_final_message is set, but the final message has no text to continue");
  options.add_generation_prompt = true;
  CHECK(failure(source, options, messages) ==
        "model.jinja: continue_final_message and add_generation_prompt exclude each other");
}

TEST_CASE("conversations that are none are refused") {
  CHECK(failure("x", {}, Json::array()) == "model.jinja: the conversation is empty: it needs at least one message");
  CHECK(failure("x", {}, Json("Hi")) == "model.jinja: messages must be an array, got string");
  CHECK(failure("x", {}, Json::array({"Hi"})) ==
        "model.jinja: message 0 must be an object with role and content, got string");
  Json deep = "x";
  for (int i = 0; i < 5000; ++i) deep = Json::array({std::move(deep)});
  const Json messages = Json::array({{{"role", "user"}, {"content", deep}}});
  CHECK(failure("x", {}, messages).find("the messages cannot be rendered: the template nests too deeply") !=
        std::string::npos);
}

TEST_CASE("mistakes in a template are reported with its line") {
  CHECK(failure("a\n{% for m in messages %}{{ m.role }}") ==
        "model.jinja:2: {% for %} is not closed: the template ends without {% endfor %}");
  CHECK(failure("{% frobnicate %}") == "model.jinja:1: unknown statement 'frobnicate'");
  CHECK(failure("\n\n{{ messages | uper }}") == "model.jinja:3: No filter named 'uper'. Did you mean 'upper'?");
  CHECK(failure("{{ messages | urlize }}") == "model.jinja:1: Jinja's filter 'urlize' is not supported");
  CHECK(failure("{{ messages is defind }}") == "model.jinja:1: No test named 'defind'. Did you mean 'defined'?");
  CHECK(failure("{% import 'x' as y %}") == "model.jinja:1: {% import %} is not available in chat templates");
  CHECK(failure("{{ messages[0].role ") == "model.jinja:1: {{ is not closed by }}");
  CHECK(failure("\n{{ 'abc }}") == "model.jinja:2: a string that begins with ' is not closed");
  CHECK(failure("{# abc") == "model.jinja:1: a comment {# is not closed by #}");
  CHECK(failure("{% raw %} abc") == "model.jinja:1: {% raw %} is not closed by {% endraw %}");
  CHECK(failure("{{ (1] }}") == "model.jinja:1: unexpected ']', expected ')'");
  CHECK(failure("{{ 1 + }}") == "model.jinja:1: got the end of the expression, expected an expression");
  CHECK(failure("{{ " + std::string(45, '2') + " }}") == "model.jinja:1: an integer is too large");
  CHECK(failure("{{ messages[" + std::string(45, '2') + "] }}") == "model.jinja:1: an integer is too large");
  CHECK(failure("{{ messages.0x1 }}") == "model.jinja:1: '0x1' is not a number");
  CHECK(failure("{{ a $ b }}") == "model.jinja:1: unexpected character '$'");
  CHECK(failure("{% if x %}{% endfor %}") == "model.jinja:1: {% endfor %} has no statement that it belongs to");
  CHECK(failure("{% break %}") == "model.jinja:1: {% break %} is not inside a loop");
  CHECK(failure("{% set none = 1 %}") == "model.jinja:1: 'none' cannot be assigned to");
  CHECK(failure("{% call x %}{% endcall %}") == "model.jinja:1: {% call %} wants a call of a macro");
}

TEST_CASE("what goes wrong while rendering is reported with its line") {
  CHECK(failure("{{ raise_exception('roles must alternate') }}") == "model.jinja:1: roles must alternate");
  CHECK(failure("a\n{% if true %}\n{{ nothing.at.all }}\n{% endif %}") == "model.jinja:3: 'nothing' is undefined");
  CHECK(failure("{{ messages[0].text.x }}") == "model.jinja:1: 'dict object' has no attribute 'text'");
  CHECK(failure("{{ 'a' + 1 }}") == "model.jinja:1: can only concatenate str (not \"int\") to str");
  CHECK(failure("{{ 1 // 0 }}") == "model.jinja:1: integer division or modulo by zero");
  CHECK(failure("{{ messages.append(1) }}") ==
        "model.jinja:1: access to attribute 'append' of 'list' object is unsafe.");
  CHECK(failure("{{ messages.__class__() }}") ==
        "model.jinja:1: access to attribute '__class__' of 'list' object is unsafe.");
  CHECK(failure("{{ 5() }}") == "model.jinja:1: 'int' object is not callable");
  CHECK(failure("{% for x in 5 %}{% endfor %}") == "model.jinja:1: 'int' object is not iterable");
  CHECK(failure("{% set a, b = [1] %}") == "model.jinja:1: not enough values to unpack (expected 2, got 1)");
  CHECK(failure("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}") ==
        "model.jinja:1: macro 'f' takes not more than 1 argument(s)");
  CHECK(failure("{{ 'a' | replace }}") == "model.jinja:1: replace() misses its argument 'old'");
  CHECK(failure("{{ 'a' | trim(x=1) }}") == "model.jinja:1: trim() got an unexpected keyword argument 'x'");
  CHECK(failure("{{ undefined_name | tojson }}") == "model.jinja:1: Object of type Undefined is not JSON serializable");
  CHECK(failure("{{ {[]: 1} }}") == "model.jinja:1: unhashable type: 'list'");
  CHECK(failure("{{ 9 ** 99 }}") == "model.jinja:1: an integer is too large (more than 127 bits)");
  // In a branch that is not taken nothing is wrong yet.
  CHECK(render("{% if false %}{{ 1 | frobnicate }}{% endif %}ok") == "ok");
}
