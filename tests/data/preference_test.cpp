#include "core/data/dataset/conversation.hpp"

#include <doctest/doctest.h>

#include "core/data/dataset/processor.hpp"
#include "lib/base/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::data;
using Json = nlohmann::ordered_json;

namespace {

Row row(const std::string& text) { return {Json::parse(text), "p.jsonl:3"}; }

std::string refusal(const std::string& text) {
  try {
    preference_record(row(text), {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// One token a byte; the template writes role:content|.
TextTools letters() {
  TextTools tools;
  tools.encode = [](std::string_view text) { return std::vector<int64_t>(text.begin(), text.end()); };
  tools.render = [](const Json& messages, const RenderOptions&) {
    std::string text;
    for (const Json& message : messages)
      text += message.at("role").get<std::string>()[0] + (":" + message.at("content").get<std::string>()) + "|";
    return text;
  };
  return tools;
}

std::string trained(const Datum& datum) {
  std::string text;
  for (size_t i = 0; i < datum.token_ids.size(); ++i)
    if (datum.token_mask[i] == 1) text += static_cast<char>(datum.token_ids[i]);
  return text;
}

const char* const kRanked = R"({"context": [{"role": "user", "content": "q"}], "completions": [
  {"rank": 1, "completion": [{"role": "assistant", "content": "bad"}]},
  {"rank": 0, "completion": [{"role": "assistant", "content": "good"}]}]})";

}  // namespace

TEST_CASE("of two ranked completions the lower rank is the better") {
  const Record record = preference_record(row(kRanked), {});
  CHECK(record.messages.dump() == R"([{"role":"user","content":"q"},{"role":"assistant","content":"good"}])");
  CHECK(record.rejected.dump() == R"([{"role":"user","content":"q"},{"role":"assistant","content":"bad"}])");
  CHECK(record.source == "p.jsonl:3");
}

TEST_CASE("a row names its columns for prompt, better and worse answer") {
  config::DatasetConfig config;
  config.spec = {{"prompt_key", "p"}, {"chosen_key", "c"}, {"rejected_key", "r"}};
  const Record record = binary_preference_record(row(R"({"p": "q", "c": "good", "r": "bad"})"), config);
  CHECK(record.messages.back().at("content") == "good");
  CHECK(record.rejected.back().at("content") == "bad");
  config.spec = Json::object();
  const Record turns = binary_preference_record(
      row(R"({"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "chosen": "a",
              "rejected": "b"})"),
      config);
  CHECK(turns.messages.size() == 3);
  CHECK(turns.rejected[0].at("role") == "system");
  CHECK_THROWS_WITH_AS(binary_preference_record(row(R"({"prompt": "q", "chosen": "a"})"), config),
                       doctest::Contains("p.jsonl:3: no field 'rejected'; it has: prompt, chosen"), Error);
}

TEST_CASE("rows that prefer nothing are refused") {
  CHECK(refusal(R"({"completions": []})").find("p.jsonl:3: no field 'context'") == 0);
  CHECK(refusal(R"({"context": [{"role": "user", "content": "q"}], "completions": [1]})")
            .find("field 'completions' holds 1, want two") != std::string::npos);
  CHECK(refusal(R"({"context": [{"role": "user", "content": "q"}], "completions": [{"rank": 0}, {"rank": 1}]})")
            .find("completions[0]: want {\"rank\": integer") != std::string::npos);
  std::string tie = kRanked;
  tie.replace(tie.find("\"rank\": 1"), 9, "\"rank\": 0");
  CHECK(refusal(tie).find("both completions have rank 0: a tie teaches nothing") != std::string::npos);
}

TEST_CASE("a pair trains on its last messages, and leaves the loss as one where it is too long") {
  ProcessorOptions options;
  options.processor = "preference_processor";
  options.max_seq_length = 12;  // "u:q|a:good|" and "$"
  options.eos_token = "$";
  Record record = preference_record(row(kRanked), {});
  const Pair pair = process_pair(record, 7, "task", options, letters());
  CHECK(pair.chosen.text == "u:q|a:good|$");
  CHECK(trained(pair.chosen) == "a:good|$");
  CHECK(trained(pair.rejected) == "a:bad|$");
  CHECK(pair.chosen.loss_multiplier == 1);
  CHECK(pair.rejected.index == 7);

  options.max_seq_length = 11;
  const Pair cut = process_pair(record, 0, "task", options, letters());
  CHECK(cut.chosen.loss_multiplier == 0);
  CHECK(cut.rejected.loss_multiplier == 0);
  CHECK(cut.chosen.token_ids.size() == 8);  // four tokens of each message

  record.rejected = nullptr;
  CHECK_THROWS_WITH_AS(process_pair(record, 0, "task", options, letters()),
                       doctest::Contains("p.jsonl:3: one answer and no worse one"), Error);
}

TEST_SUITE("golden") {
  TEST_CASE("the mask of a conversation agrees with NeMo-RL") {
    const auto wanted = [](const golden::Json& test_case) {
      return golden::prefix(test_case) == "flatten_sft" && test_case.at("config").at("roles_to_train_on").size() == 1;
    };
    golden::for_each_case(
        "rewards",
        [](const golden::Json& test_case) {
          const golden::Json& logs = test_case.at("inputs").at("message_logs");
          const golden::Tensor mask = golden::tensor(test_case.at("expected").at("token_loss_mask"));
          for (size_t row = 0; row < logs.size(); ++row) {
            std::vector<int64_t> lengths;
            for (const auto& message : logs[row]) lengths.push_back(message.at("token_ids").at("shape")[0]);
            const auto got = message_mask(logs[row], lengths, test_case.at("config").at("only_unmask_final"));
            for (size_t t = 0; t < got.size(); ++t)
              CHECK(got[t] == mask.data[row * static_cast<size_t>(mask.shape[1]) + t]);
          }
        },
        wanted);
  }
}
