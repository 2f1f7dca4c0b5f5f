#include "core/data/dataset/processor.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/data/dataset/contents.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

using namespace hexad;
using namespace hexad::data;
using Json = nlohmann::ordered_json;
using Ids = std::vector<int64_t>;

namespace {

// One token a byte; the template writes <role>content; and "<assistant>" as the generation prompt.
TextTools bytes() {
  TextTools tools;
  tools.encode = [](std::string_view text) { return Ids(text.begin(), text.end()); };
  tools.render = [](const Json& messages, const RenderOptions& options) {
    std::string text;
    for (const Json& message : messages) {
      text += fmt::format("<{}>{};", message.at("role").get<std::string>(), message.at("content").get<std::string>());
    }
    return options.add_generation_prompt ? text + "<assistant>" : text;
  };
  return tools;
}

Record conversation() {
  Record record;
  record.messages = Json::parse(R"([{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}])");
  record.answer = "2";
  record.source = "t.jsonl:1";
  return record;
}

}  // namespace

TEST_CASE("a prompt is templated, rendered and tokenised without the answer") {
  ProcessorOptions options;
  options.prompt = "Solve {}: {{x}}";
  options.system_prompt = "Be brief.";
  const Datum datum = process(conversation(), 5, "math", options, bytes());
  CHECK(datum.text == "<system>Be brief.;<user>Solve 1+1: {x};<assistant>");
  CHECK(datum.token_ids.size() == datum.text.size());
  CHECK(datum.answer == "2");
  CHECK(datum.index == 5);
  CHECK(datum.env_name == "math");
  CHECK(datum.loss_multiplier == 1);
  CHECK(datum.token_mask.empty());
}

TEST_CASE("a prompt is all but an answer at the end, or what the row says is the prompt") {
  const auto text = [](const char* messages, size_t prompt = 0, const std::string& file = "") {
    Record record;
    record.messages = Json::parse(messages), record.prompt_messages = prompt, record.source = "t.jsonl:1";
    ProcessorOptions options;
    options.prompt = file;
    TextTools tools = bytes();
    tools.render = [](const Json& shown, const RenderOptions&) {
      std::string line;
      for (const Json& message : shown)
        line += message.at("role").get<std::string>()[0] + value_text(message.value("content", Json()));
      return line;
    };
    return process(record, 0, "math", options, tools).text;
  };
  CHECK(text(R"([{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [{"id": 1}]},
                 {"role": "tool", "content": "4"}])") == "u\"q\"anullt\"4\"");
  CHECK(
      text(
          R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": null, "tool_calls": [{"id": 1}]}])") ==
      "u\"q\"anull");
  CHECK(text(R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "4", "tool_calls": null}])") ==
        "u\"q\"");
  CHECK(text(R"([{"role": "user", "content": [{"type": "text", "text": "q"}]}])") ==
        R"(u[{"type":"text","text":"q"}])");
  const char* const turns = R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
                                {"role": "user", "content": "r"}, {"role": "tool", "content": "4"}])";
  CHECK(text(turns, 0, "Solve {}") == R"(u"q"a"a"u"Solve r"t"4")");
  CHECK(text(turns, 1) == R"(u"q")");
  CHECK_THROWS_WITH_AS(text(R"([{"role": "user", "content": [{"type": "text", "text": "q"}]}])", 0, "Solve {}"),
                       doctest::Contains("t.jsonl:1: prompt_file wraps the last user's message, which has to be text"),
                       Error);
  CHECK_THROWS_WITH_AS(text(R"([{"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}])"),
                       doctest::Contains("t.jsonl:1: a prompt has a user's message before the answer"), Error);
}

TEST_CASE("text without a chat template is read as it is") {
  Record record = conversation();
  record.is_plain = true, record.prompt_messages = 1;
  TextTools tools = bytes();
  tools.encode_plain = [](std::string_view text) {
    Ids ids = {'^'};  // what the tokenizer puts before a text
    ids.insert(ids.end(), text.begin(), text.end());
    return ids;
  };
  ProcessorOptions options;
  CHECK(process(record, 0, "math", options, tools).text == "1+1");
  CHECK(process(record, 0, "math", options, tools).token_ids == Ids{'^', '1', '+', '1'});
  options.prompt = "Solve {}";
  CHECK(process(record, 0, "math", options, tools).text == "Solve 1+1");
  options.system_prompt = "Be brief.";
  CHECK_THROWS_WITH_AS(process(record, 0, "math", options, tools),
                       doctest::Contains("t.jsonl:1: system_prompt_file is for messages, and the row is text"), Error);
  options = {};
  options.processor = "sft_processor";
  options.eos_token = "$";
  const Datum datum = process(record, 0, "chat", options, tools);
  CHECK(datum.token_ids == Ids{'^', '1', '+', '1', '2', '$'});
  CHECK(datum.token_mask == std::vector<float>{0, 0, 0, 0, 1, 1});
  record.messages.erase(0);
  record.prompt_messages = 0;
  CHECK(process(record, 0, "chat", options, tools).token_mask == std::vector<float>{1, 1, 1});
}

TEST_CASE("an answer of several messages trains, and no answer within its prompt") {
  Record record = conversation();
  record.messages = Json::parse(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
      {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}, {"role": "tool", "content": "e"},
      {"role": "assistant", "content": "f"}])");
  record.answer = "f";
  record.prompt_messages = 3;
  ProcessorOptions options;
  options.processor = "sft_processor";
  const auto trained = [&](const Datum& datum) {
    std::string text;
    for (size_t i = 0; i < datum.text.size(); ++i)
      if (datum.token_mask[i] == 1) text += datum.text[i];
    return text;
  };
  CHECK(trained(process(record, 0, "chat", options, bytes())) == "<assistant>d;<assistant>f;");
  options.system_prompt = "s";
  CHECK(trained(process(record, 0, "chat", options, bytes())) == "<assistant>d;<assistant>f;");
  options.processor = "preference_processor";
  record.rejected = record.messages;
  CHECK(trained(process_pair(record, 0, "chat", options, bytes()).rejected) == "<assistant>d;<assistant>f;");
  record.prompt_messages = 0;
  CHECK(process(record, 0, "chat", {}, bytes()).text ==
        "<user>a;<assistant>b;<user>c;<assistant>d;<tool>e;<assistant>");
}

TEST_CASE("an over-long prompt keeps four tokens and leaves the loss") {
  ProcessorOptions options;
  options.max_seq_length = 21;  // "<user>1+1;<assistant>" has 21
  const Datum cut = process(conversation(), 0, "math", options, bytes());
  CHECK(cut.loss_multiplier == 0);
  CHECK(cut.token_ids == Ids{'<', 'u', 's', 'e'});
  options.max_seq_length = 22;
  CHECK(process(conversation(), 0, "math", options, bytes()).loss_multiplier == 1);
}

TEST_CASE("a conversation trains on the assistant's tokens") {
  ProcessorOptions options;
  options.processor = "sft_processor";
  options.bos_token = "^";
  options.eos_token = "$";
  const Datum datum = process(conversation(), 0, "chat", options, bytes());
  CHECK(datum.text == "^<user>1+1;<assistant>2;$");
  std::string trained;
  for (size_t i = 0; i < datum.text.size(); ++i) {
    if (datum.token_mask[i] == 1) trained += datum.text[i];
  }
  CHECK(trained == "<assistant>2;$");

  options.add_generation_prompt = true;
  const Datum prompted = process(conversation(), 0, "chat", options, bytes());
  CHECK(prompted.text == datum.text);
  CHECK(std::count(prompted.token_mask.begin(), prompted.token_mask.end(), 1.0f) == 3);

  Record question = conversation();
  question.messages.erase(1);
  CHECK(process(question, 0, "chat", options, bytes()).text == datum.text);  // its answer is the assistant's message

  options.add_generation_prompt = false;
  options.only_unmask_final = true;
  Record turns = conversation();
  turns.messages = Json::parse(R"([{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "1+1"},
                                   {"role": "assistant", "content": "2"}])");
  const Datum last = process(turns, 0, "chat", options, bytes());
  CHECK(std::count(last.token_mask.begin(), last.token_mask.end(), 1.0f) == 14);  // "<assistant>2;$" and no "Hi"

  options.max_seq_length = static_cast<int64_t>(last.token_ids.size());
  CHECK(process(turns, 0, "chat", options, bytes()).loss_multiplier == 1);
  options.add_generation_prompt = true;
  options.max_seq_length = 10;
  const Datum cut = process(conversation(), 0, "chat", options, bytes());
  CHECK(cut.loss_multiplier == 0);
  CHECK(cut.token_ids.size() == 7);
}

TEST_CASE("prompt files wrap the first question of a conversation that trains, and come before it") {
  ProcessorOptions options;
  options.processor = "sft_processor";
  options.prompt = "Solve {}";
  options.system_prompt = "Be brief.";
  CHECK(process(conversation(), 0, "chat", options, bytes()).text == "<system>Be brief.;<user>Solve 1+1;<assistant>2;");
  Record pair = conversation();
  pair.rejected = Json::parse(R"([{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "3"}])");
  options.processor = "preference_processor";
  CHECK(process_pair(pair, 0, "chat", options, bytes()).rejected.text ==
        "<system>Be brief.;<user>Solve 1+1;<assistant>3;");
  options.processor = "sft_processor";
  Record none = conversation();
  none.messages.erase(0);
  CHECK_THROWS_WITH_AS(process(none, 0, "chat", options, bytes()),
                       doctest::Contains("t.jsonl:1: prompt_file wraps the first user's message, which has to"), Error);
  // The first question in parts: the second one is not wrapped in its place.
  none.messages = Json::parse(R"([{"role": "user", "content": [{"type": "text", "text": "1+1"}]},
                                  {"role": "user", "content": "1 + 1"}, {"role": "assistant", "content": "2"}])");
  CHECK_THROWS_WITH_AS(process(none, 0, "chat", options, bytes()),
                       doctest::Contains("t.jsonl:1: prompt_file wraps the first user's message, which has to"), Error);
}

TEST_CASE("a prompt file has a place for the question, and is text") {
  CHECK_THROWS_WITH_AS(format_template("Answer briefly. {{}}", {"a"}, "prompt_file"),
                       doctest::Contains("prompt_file: no {} in the template: it has no place for the question"),
                       Error);
  const auto file = [](const std::string& bytes) {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("prompt-{}", ::getpid());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  };
  CHECK(read_prompt_file(file("\xEF\xBB\xBFSolve {}\r\n")) == "Solve {}\r\n");
  for (const std::string& bytes : {std::string("\xFF\xFE{}"), std::string("a\0{}", 4)}) {
    CHECK_THROWS_WITH_AS(read_prompt_file(file(bytes)),
                         doctest::Contains("want text in UTF-8, and the file holds other bytes"), Error);
  }
  for (const char* blank : {"", " \n"}) {
    CHECK_THROWS_WITH_AS(read_prompt_file(file(blank)),
                         doctest::Contains("the file is blank: leave the key out for none"), Error);
  }
  std::filesystem::remove(file(""));
}

TEST_CASE("reasoning that the chat template leaves out is counted") {
  ProcessorOptions options;
  options.processor = "sft_processor";
  Record record = conversation();
  record.answer = "";
  record.messages[1]["content"] = "<think>one and one</think>2";
  CHECK_FALSE(process(record, 0, "chat", options, bytes()).drops_reasoning);
  TextTools distilled = bytes();  // DeepSeek-R1's templates drop the reasoning of every answer
  distilled.render = [](const Json& messages, const RenderOptions& render) {
    Json shown = messages;
    for (Json& message : shown) {
      const std::string content = message.at("content");
      const size_t close = content.find("</think>");
      if (close != content.npos) message["content"] = content.substr(close + 8);
    }
    return bytes().render(shown, render);
  };
  const Datum datum = process(record, 0, "chat", options, distilled);
  CHECK(datum.drops_reasoning);
  CHECK(datum.text == "<user>1+1;<assistant>2;");
  CHECK(hidden_reasoning_notice(contents_of({table::Lazy<Datum>({datum})}), "conversations") ==
        "in 1 of 1 conversations the chat template shows nothing of an answer's reasoning, which does not train so; "
        "another one is set by policy.tokenizer.chat_template");
  CHECK(hidden_reasoning_notice(Contents(), "conversations") == "");
}

TEST_CASE("a conversation that ends with an answer takes no other one") {
  ProcessorOptions options;
  options.processor = "sft_processor";
  Record record = conversation();
  record.answer = "3";
  CHECK_THROWS_WITH_AS(process(record, 0, "chat", options, bytes()),
                       doctest::Contains("t.jsonl:1: the conversation ends with an answer, and the column that "
                                         "output_key names has another: '3'"),
                       Error);
}

TEST_CASE("templates follow Python's str.format") {
  CHECK(format_template("{} and {}", {"a", "b"}, "t") == "a and b");
  CHECK(format_template("{1}{0}{{}}", {"a", "b"}, "t") == "ba{}");
  CHECK_THROWS_WITH_AS(format_template("{} {}", {"a"}, "cot.txt"),
                       doctest::Contains("cot.txt: replacement field 2 of 1"), Error);
  CHECK_THROWS_WITH_AS(format_template("\\boxed{}}", {"a"}, "cot.txt"), doctest::Contains("single '}'"), Error);
  CHECK_THROWS_WITH_AS(format_template("{", {"a"}, "cot.txt"), doctest::Contains("'{' without '}'"), Error);
  CHECK_THROWS_WITH_AS(format_template("{name}", {"a"}, "cot.txt"),
                       doctest::Contains("unknown replacement field '{name}'"), Error);
  CHECK_THROWS_WITH_AS(format_template("{}{0}", {"a"}, "cot.txt"), doctest::Contains("do not mix"), Error);
  CHECK_THROWS_WITH_AS(read_prompt_file("/nowhere.txt"), doctest::Contains("the prompt file cannot be read"), Error);
}

TEST_CASE("processor errors") {
  CHECK_THROWS_WITH_AS(check_processor("sft_procesor"), doctest::Contains("did you mean 'sft_processor'?"), Error);
  Record record = conversation();
  record.messages = Json::array();
  CHECK_THROWS_WITH_AS(process(record, 0, "math", {}, bytes()),
                       doctest::Contains("t.jsonl:1: a prompt has a user's message before the answer; processor "),
                       Error);
  TextTools failing = bytes();
  failing.render = [](const Json&, const RenderOptions&) -> std::string { fail(ErrorKind::data, "no such role"); };
  for (const char* processor : {"default", "sft_processor"}) {
    ProcessorOptions options;
    options.processor = processor;
    CHECK_THROWS_WITH_AS(process(conversation(), 0, "math", options, failing), "t.jsonl:1: no such role", Error);
  }
}
