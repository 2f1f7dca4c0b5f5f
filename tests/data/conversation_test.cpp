#include "core/data/dataset/conversation.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "tests/data/folder.hpp"

using namespace hexad;
using namespace hexad::data;
using data_test::Folder;
using Json = nlohmann::ordered_json;

TEST_CASE("conversations keep their messages, tools and system prompt") {
  const Folder folder;
  config::DatasetConfig config;
  config.dataset_name = "openai_format";
  config.data_path = folder.write(
      "chat.jsonl", R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],)"
                    R"( "tools": [{"name": "f"}], "persona": "Be kind."})");
  config.spec = Json{{"system_key", "persona"}};
  const Record record = load_dataset(config).train.records[0];
  CHECK(record.messages[0] == Json{{"role", "system"}, {"content", "Be kind."}});
  CHECK(record.messages.size() == 3);
  CHECK(record.answer == "hello");
  CHECK(record.tools == Json::parse(R"([{"name": "f"}])"));

  const auto refusal = [&](const std::string& row) -> std::string {
    config.data_path = folder.write("bad.jsonl", row);
    try {
      load_dataset(config);
    } catch (const Error& error) {
      return std::string(error.what()).substr(folder.path().size() + 1);
    }
    return "";
  };
  CHECK(refusal(R"({"messages": [{"content": "hi"}]})") ==
        R"(bad.jsonl:1: messages[0]: want an object with a role, got {"content":"hi"})");
  CHECK(refusal(R"({"chat": []})") == "bad.jsonl:1: no field 'messages'; it has: chat");
  CHECK(refusal(R"({"messages": []})") == "bad.jsonl:1: field 'messages' is empty, want a list of messages");
  for (const char* content : {"5", "1.50", "true", R"({"text":"a"})", R"(["a"])"})
    CHECK(refusal(fmt::format(R"({{"messages": [{{"role": "user", "content": {}}}]}})", content)) ==
          fmt::format("bad.jsonl:1: messages[0].content: want text, or a list of parts (objects), got {}", content));
  for (const char* calls : {"5", R"({"name":"f"})", R"(["f"])"})
    CHECK(refusal(fmt::format(R"({{"messages": [{{"role": "assistant", "tool_calls": {}}}]}})", calls)) ==
          fmt::format("bad.jsonl:1: messages[0].tool_calls: want a list of calls (objects), got {}", calls));
  CHECK(refusal(R"({"messages": [{"role": "assistant", "tool_calls": "[]"}]})") ==
        R"(bad.jsonl:1: messages[0].tool_calls: want a list of calls (objects), got "[]"; of JSON text jq makes it )"
        "with fromjson");
  CHECK(refusal(R"({"messages": [{"role": "user", "content": "a"}]})") ==
        "bad.jsonl:1: not one of 1 rows has a field 'persona', which system_key names; null is for none");
  config.spec = Json{{"tool_key", "functions"}};
  CHECK(refusal(R"({"messages": [{"role": "user", "content": "a"}], "tools": []})").find("which tool_key names") !=
        std::string::npos);
  config.spec = Json{{"tool_key", "tools"}};  // as files of NeMo-RL say, with tools or without
  CHECK(refusal(R"({"messages": [{"role": "user", "content": "a"}]})") == "");
}

TEST_CASE("tools may be JSON text, as a whole or each, and nothing else") {
  const Folder folder;
  config::DatasetConfig config;
  config.dataset_name = "openai_format";
  const auto tools = [&](const std::string& given) {
    config.data_path =
        folder.write("chat.jsonl", R"({"messages": [{"role": "user", "content": "hi"}], "tools": )" + given + "}");
    return load_dataset(config).train.records[0].tools;
  };
  const Json wanted = Json::parse(R"([{"name": "f"}])");
  CHECK(tools(R"([{"name": "f"}])") == wanted);
  CHECK(tools(R"("[{\"name\": \"f\"}]")") == wanted);
  CHECK(tools(R"(["{\"name\": \"f\"}"])") == wanted);
  CHECK(tools("null").is_null());
  CHECK(tools(R"("")").is_null());
  CHECK(tools("[]") == Json::array());
  for (const char* wrong :
       {"5", R"({"a":1})", R"(["f"])", "[5]", "[null]", R"("5")", R"("{}")", R"([{"function": "{\"name\": \"f\"}"}])"})
    CHECK_THROWS_WITH_AS(tools(wrong), doctest::Contains("chat.jsonl:1: field 'tools': "), Error);
  CHECK_THROWS_WITH_AS(tools("5"), doctest::Contains("want a list of tools (objects), or one as JSON text, got 5"),
                       Error);
}

TEST_CASE("a conversation's answer is in its named column, or what the assistant says last") {
  const Folder folder;
  config::DatasetConfig config;
  config.dataset_name = "openai_format";
  config.data_path =
      folder.write("chat.jsonl", R"({"prompt": [{"role": "user", "content": "6*7?"}], "solution": "42", "hint": 1})");
  config.spec = Json{{"chat_key", "prompt"}};
  CHECK(load_dataset(config).train.records[0].answer.empty());
  config.output_key = "solution";
  const Record record = load_dataset(config).train.records[0];
  CHECK(record.answer == "42");
  CHECK(record.messages.size() == 1);
  CHECK(record.metadata == Json{{"hint", 1}});
  config.output_key.reset();
  config.data_path = folder.write("parts.jsonl", R"({"prompt": [{"role": "user", "content": "6*7?"},)"
                                                 R"( {"role": "assistant", "content": [{"type": "text", "text": "4"},)"
                                                 R"( {"type": "text", "text": "2"}]}]})");
  CHECK(load_dataset(config).train.records[0].answer == "42");
  config.data_path =
      folder.write("chat.jsonl", R"({"prompt": [{"role": "user", "content": "6*7?"}], "solution": "42", "hint": 1})");
  config.output_key = "answer";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("chat.jsonl:1: no field 'answer'; it has: prompt"),
                       Error);
  config.output_key = "solution";
  config.data_path = folder.write("chat.jsonl", R"({"prompt": [{"role": "user", "content": "6*7?"}], "solution": ""})");
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("chat.jsonl:1: field 'solution' is empty"), Error);
}
