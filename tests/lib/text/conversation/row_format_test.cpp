#include "lib/text/conversation/row_format.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::text;
using Json = nlohmann::ordered_json;

namespace {

std::optional<RowFormat> format_of(const Json& row, RowUse use, std::optional<std::string> answer = std::nullopt) {
  std::set<std::string> columns;
  for (const auto& [key, value] : row.items()) columns.insert(key);
  return row_format(columns, row, "r.jsonl:1", {use, std::move(answer)});
}

// "user: q | assistant: a", the prompt's messages before a "=>" where the row says which they are.
std::string shown(const Json& messages, size_t prompt) {
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i > 0) text += i == prompt ? " => " : " | ";
    text += messages[i].at("role").get<std::string>() + ": " + messages[i].value("content", Json("-")).dump();
  }
  return text;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct Case {
  RowUse use;
  const char *row, *name, *messages, *answer;
  bool is_plain = false;
};

const std::vector<Case> kCases = {
    {RowUse::prompts, R"({"question": "q", "answer": 4, "level": 1})", "question + answer", R"(user: "q")", "4"},
    {RowUse::prompts, R"({"problem": "q", "solution": "4"})", "problem + solution", R"(user: "q")", "4"},
    {RowUse::prompts, R"({"question": "q"})", "question", R"(user: "q")", ""},
    {RowUse::prompts, R"({"prompt": "q"})", "prompt as text, without chat template", R"(user: "q")", "", true},
    {RowUse::prompts, R"({"prompt": "q", "answer": "4"})", "prompt + answer as text, without chat template",
     R"(user: "q")", "4", true},
    {RowUse::prompts, R"({"prompt": [{"role": "user", "content": "q"}]})", "conversational prompt", R"(user: "q")", ""},
    {RowUse::prompts, R"({"prompt": [{"role": "user", "content": "q"}], "reward_model": {"ground_truth": "4"}})",
     "conversational prompt + reward_model.ground_truth", R"(user: "q")", "4"},
    {RowUse::prompts, R"({"prompt": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}]})",
     "conversational prompt", R"(user: "q" | assistant: "4")", "4"},
    {RowUse::conversations, R"({"prompt": "q", "completion": "4", "answer": "5"})",
     "prompt + completion as text, without chat template", R"(user: "q" => assistant: "4")", "4", true},
    {RowUse::conversations,
     R"({"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "4"}]})",
     "conversational prompt + completion", R"(user: "q" => assistant: "4")", "4"},
    {RowUse::conversations, R"({"messages": [{"role": "user", "content": "q"}], "tools": []})", "messages with tools",
     R"(user: "q")", ""},
    {RowUse::prompts, R"({"messages": [{"role": "user", "content": "q"}], "answer": "4"})", "messages + answer",
     R"(user: "q")", "4"},
    {RowUse::conversations,
     R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}], "answer": "5"})",
     "messages", R"(user: "q" | assistant: "4")", "4"},
    {RowUse::prompts,
     R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [{"id": 1}]}]})",
     "messages", R"(user: "q" | assistant: "-")", ""},
    {RowUse::prompts,
     R"({"system": "s", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "4"}]})",
     "conversations (ShareGPT)", R"(system: "s" | user: "q" | assistant: "4")", "4"},
    {RowUse::conversations, R"({"instruction": "q", "input": "x", "output": "4", "text": "all"})",
     "instruction + output (Alpaca)", R"(user: "q\nx")", "4"},
    {RowUse::conversations, R"({"instruction": "q", "input": "", "output": "4", "system": "s"})",
     "instruction + output (Alpaca)", R"(system: "s" | user: "q")", "4"},
    {RowUse::conversations, R"({"text": "all"})", "text, without chat template", R"(assistant: "all")", "", true},
};

}  // namespace

TEST_CASE("columns tell the format of rows") {
  for (const Case& wanted : kCases) {
    INFO(wanted.row);
    const Json row = Json::parse(wanted.row);
    const std::optional<RowFormat> format = format_of(row, wanted.use);
    REQUIRE(format);
    CHECK(format->name == wanted.name);
    const RowText said = format->read(row, "r.jsonl:1");
    CHECK(shown(said.messages, said.prompt_messages) == wanted.messages);
    CHECK(said.answer == wanted.answer);
    CHECK(said.is_plain == wanted.is_plain);
    CHECK(said.rejected.is_null());
  }
  CHECK_FALSE(format_of({{"input", "q"}, {"output", "4"}}, RowUse::prompts));
  CHECK_FALSE(format_of({{"input", "q"}, {"output", "4"}, {"prompt", "p"}, {"q", "r"}}, RowUse::prompts));
  CHECK_FALSE(format_of({{"input", "q"}, {"a", "4"}, {"prompt", "p"}}, RowUse::prompts, "a"));
  CHECK_FALSE(format_of({{"a", "q"}, {"b", "4"}}, RowUse::prompts));
  CHECK_FALSE(format_of({{"chosen", "q"}, {"rejected", "4"}}, RowUse::prompts));
}

TEST_CASE("pairs have their prompt in a column, or both answers begin with it") {
  const auto pair = [](const std::string& text, std::string& name) {
    const Json row = Json::parse(text);
    const std::optional<RowFormat> format = format_of(row, RowUse::pairs);
    REQUIRE(format);
    name = format->name;
    const RowText said = format->read(row, "r.jsonl:1");
    return fmt::format("{} / {}{}", shown(said.messages, said.prompt_messages),
                       shown(said.rejected, said.prompt_messages), said.is_plain ? " plain" : "");
  };
  const std::string user = R"([{"role": "user", "content": "q"}])", messages = R"(user: "q" => assistant: "a")",
                    worse = R"(user: "q" => assistant: "b")";
  const auto said = [](const char* a) { return fmt::format(R"([{{"role": "assistant", "content": "{}"}}])", a); };
  const auto whole = [](const char* a) {
    return fmt::format(R"([{{"role": "user", "content": "q"}}, {{"role": "assistant", "content": "{}"}}])", a);
  };
  std::string name;
  for (const auto& [row, wanted_name] :
       {std::pair(fmt::format(R"({{"prompt": {}, "chosen": {}, "rejected": {}}})", user, said("a"), said("b")),
                  "conversational prompt + chosen + rejected"),
        {fmt::format(R"({{"chosen": {}, "rejected": {}}})", whole("a"), whole("b")),
         "conversational chosen + rejected, prompt implicit"},
        {fmt::format(R"({{"prompt": "q", "chosen": {}, "rejected": {}}})", whole("a"), whole("b")),
         "conversational prompt + chosen + rejected"},
        {fmt::format(R"({{"prompt": {}, "chosen": {}, "rejected": {}}})", user, whole("a"), whole("b")),
         "conversational prompt + chosen + rejected"},
        {fmt::format(R"({{"prompt": "q", "chosen": {}, "rejected": {}, "messages": []}})", said("a"), said("b")),
         "conversational prompt + chosen + rejected"},
        {fmt::format(R"({{"prompt": {}, "chosen": "a", "rejected": "b"}})", user),
         "conversational prompt + chosen + rejected"}}) {
    INFO(row);
    CHECK(pair(row, name) == messages + " / " + worse);
    CHECK(name == wanted_name);
  }
  CHECK(pair(R"({"prompt": "q", "chosen": " a", "rejected": " b"})", name) ==
        R"(user: "q" => assistant: " a" / user: "q" => assistant: " b" plain)");
  CHECK(name == "prompt + chosen + rejected as text, without chat template");
  CHECK(pair(R"({"chosen": "It is ä.", "rejected": "It is ö."})", name) ==
        R"(user: "It is" => assistant: " ä." / user: "It is" => assistant: " ö." plain)");
  CHECK(name == "chosen + rejected, prompt implicit as text, without chat template");
  CHECK(pair(R"({"chosen": "same", "rejected": "same"})", name) ==
        R"(user: "sam" => assistant: "e" / user: "sam" => assistant: "e" plain)");
}

TEST_CASE("rows that several columns could be the prompt or the answer of name the two keys that decide") {
  const auto refusal = [](const char* row, RowUse use) { return error_of([&] { format_of(Json::parse(row), use); }); };
  CHECK(refusal(R"({"prompt": "q", "messages": [{"role": "user", "content": "q"}]})", RowUse::conversations) ==
        "r.jsonl:1: rows have messages and prompt, and each could be what the model is to read. Two keys of the data "
        "set decide, one for the prompt and output_key for the answer: dataset_name: openai_format with chat_key: "
        "messages; or dataset_name: ResponseDataset with input_key: prompt");
  CHECK(refusal(R"({"problem": "q", "solution": "so 4", "answer": "4"})", RowUse::prompts) ==
        "r.jsonl:1: rows have solution and answer, and each could be the answer. Two keys of the data set decide, one "
        "for the prompt and output_key for the answer: dataset_name: ResponseDataset with input_key: problem and "
        "output_key: answer");
  CHECK(refusal(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}],
                    "answer": "5"})",
                RowUse::prompts)
            .find("rows have messages and answer, and each could be the answer") != std::string::npos);
  CHECK(refusal(R"({"input": "q", "question": "q"})", RowUse::prompts).find("rows have question and input") !=
        std::string::npos);
  // A key decides.
  const Json row = Json::parse(R"({"problem": "q", "solution": "so 4", "answer": "4"})");
  CHECK(format_of(row, RowUse::prompts, "answer")->read(row, "").answer == "4");
  CHECK(format_of(row, RowUse::prompts, "")->read(row, "").answer == "");
}

TEST_CASE("types of rows that nothing here trains on are refused by name") {
  for (const RowUse use : {RowUse::prompts, RowUse::conversations, RowUse::pairs}) {
    CHECK(error_of([&] {
            format_of({{"prompt", "q"}, {"completion", "a"}, {"label", true}}, use);
          }).find("r.jsonl:1: rows of unpaired preference (prompt, completion, label) are not read: ") == 0);
    CHECK(error_of([&] {
            format_of({{"prompt", "q"}, {"completions", Json::array()}, {"labels", Json::array()}}, use);
          }).find("r.jsonl:1: rows of stepwise supervision (prompt, completions, labels) are not read: ") == 0);
  }
}

TEST_CASE("what a row of a format may not be is said with its place") {
  const auto refusal = [](const char* first, const char* row, RowUse use) {
    const auto format = format_of(Json::parse(first), use);
    return error_of([&] { format->read(Json::parse(row), "r.jsonl:2"); });
  };
  const char* const question = R"({"question": "q", "answer": "a"})";
  CHECK(refusal(question, R"({"question": "q"})", RowUse::prompts) == "r.jsonl:2: no field 'answer'; it has: question");
  CHECK(refusal(question, R"({"question": null, "answer": "a"})", RowUse::prompts) ==
        "r.jsonl:2: field 'question' is null, want text");
  const char* const messages = R"({"messages": []})";
  CHECK(refusal(messages, R"({"messages": "[]"})", RowUse::prompts) ==
        "r.jsonl:2: field 'messages' is string, want a list of messages");
  CHECK(refusal(messages, R"({})", RowUse::prompts) == "r.jsonl:2: field 'messages' is null, want a list of messages");
  const char* const prompt = R"({"prompt": "q", "completion": "a"})";
  CHECK(refusal(prompt, R"({"prompt": "q", "completion": [{"role": "assistant", "content": "a"}]})",
                RowUse::conversations) ==
        "r.jsonl:2: of 'prompt' and 'completion' one is text and the other a list of messages, want both alike");
  CHECK(refusal(prompt, R"({"prompt": [{"role": "assistant", "content": "So"}], "completion": "a"})",
                RowUse::conversations)
            .find("r.jsonl:2: 'prompt' ends with an assistant's message, and 'completion' is the answer: ") == 0);
  const char* const share = R"({"conversations": []})";
  CHECK(refusal(share, R"({"conversations": [{"from": "human"}]})", RowUse::prompts) ==
        R"(r.jsonl:2: conversations[0]: want {"from": text, "value": text}, got {"from":"human"})");
  CHECK(refusal(share, R"({"conversations": [{"from": "human", "value": null}]})", RowUse::prompts)
            .find("r.jsonl:2: conversations[0]: want ") == 0);
  CHECK(
      refusal(share, R"({"conversations": [{"from": "function_call", "value": "{}"}]})", RowUse::prompts) ==
      "r.jsonl:2: conversations[0].from: got 'function_call', want human, gpt, system or tool. Calls of tools are read "
      "from a column 'messages' with roles and tool_calls");
  for (const char* no_list : {R"({"conversations": []})", R"({"conversations": 3})", R"({"conversations": [3]})"})
    CHECK(refusal(share, no_list, RowUse::prompts).find("r.jsonl:2: ") == 0);
  CHECK(refusal(R"({"instruction": "q", "output": "a"})",
                R"({"instruction": "q", "output": "a", "history": [["q", "a"]]})", RowUse::prompts)
            .find("r.jsonl:2: earlier turns in a field 'history' are not read") == 0);
  const char* const pair = R"({"chosen": "a", "rejected": "b"})";
  CHECK(refusal(pair, R"({"chosen": [{"role": "assistant", "content": "a"}], "rejected": "b"})", RowUse::pairs) ==
        "r.jsonl:2: of 'chosen' and 'rejected' one is text and the other a list of messages, want both alike");
  const char* const answers =
      R"("chosen": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}],
         "rejected": [{"role": "user", "content": "y"}, {"role": "assistant", "content": "a"}])";
  CHECK(refusal(pair, ("{" + std::string(answers) + "}").c_str(), RowUse::pairs)
            .find("r.jsonl:2: 'chosen' and 'rejected' begin with different messages") == 0);
  CHECK(refusal(pair, (R"({"prompt": "q", )" + std::string(answers) + "}").c_str(), RowUse::pairs)
            .find("r.jsonl:2: 'chosen' and 'rejected' begin with a user's message that is not 'prompt'") == 0);
  CHECK(refusal(pair, R"({"chosen": "yes", "rejected": "no"})", RowUse::pairs)
            .find("r.jsonl:2: 'chosen' and 'rejected' begin with different text, and no other field is their") == 0);
  CHECK(refusal(R"({"prompt": "q", "chosen": "a", "rejected": "b"})",
                R"({"prompt": null, "chosen": "a", "rejected": "b"})",
                RowUse::pairs) == "r.jsonl:2: field 'prompt' is null, want text");
  const Json beside = {{"question", "q"}, {"chosen", "yes"}, {"rejected", "no"}};
  CHECK_THROWS_WITH_AS(format_of(beside, RowUse::pairs),
                       doctest::Contains("rows have 'question' beside 'chosen' and 'rejected', and no 'prompt'"),
                       Error);
  CHECK_FALSE(format_of({{"input", "q"}, {"output", "a"}, {"completion", "c"}, {"label", true}}, RowUse::prompts));
  CHECK(refusal(pair, R"({"chosen": [], "rejected": []})", RowUse::pairs) ==
        "r.jsonl:2: field 'chosen' is empty, want a list of messages");
}
