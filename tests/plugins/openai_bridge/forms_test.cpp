// One bridge for the ways in which OpenAI-compatible servers are asked, and tell tokens and log-probs.
#include <algorithm>

#include "tests/plugins/openai_bridge/support/harness.hpp"

using namespace openai_test;

namespace {

Wish letters(uint64_t id, int64_t tokens) {
  Wish wish;
  wish.id = id, wish.prompt = {4, 5, 6}, wish.max_new_tokens = tokens;
  return wish;
}

// What the fake model says to it, of the ids 4 to 11 alone.
std::pair<std::vector<int32_t>, std::vector<float>> said_to(const Wish& wish) {
  std::vector<int32_t> tokens = wish.prompt, made;
  std::vector<float> logprobs;
  for (int64_t i = 0; i < wish.max_new_tokens; ++i) {
    logprobs.push_back(next_logprob(tokens, 0));
    made.push_back(4 + next_token(tokens, 0) % 8);
    tokens.push_back(made.back());
  }
  return {made, logprobs};
}

FakeOpenai::Options options(Kind kind) { return {.kind = kind, .letters = kLetters}; }

}  // namespace

TEST_CASE("samples of a server that takes and tells token ids are its own, with their log-probs") {
  const FakeOpenai server;
  Harness bridge(server);
  const std::vector<Wish> wishes = many(12);
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) {
    check_sample(wish, samples[wish.id]);
    CHECK(samples[wish.id].spans == std::vector<std::pair<int64_t, int64_t>>{{0, 0}});
  }
  CHECK(LogLines::all().has("takes requests: OpenAI server (fake), asked with token ids and vLLM's keys"));
  const Json body = server.samples().at(0);
  const Json rest = {{"model", "m"},
                     {"stream", false},
                     {"n", 1},
                     {"max_tokens", 12},
                     {"temperature", 1.0},
                     {"top_p", 1.0},
                     {"logprobs", 1},
                     {"top_k", 0},
                     {"min_p", 0.0},
                     {"stop_token_ids", {2}},
                     {"ignore_eos", false},
                     {"repetition_penalty", 1},
                     {"presence_penalty", 0},
                     {"frequency_penalty", 0},
                     {"skip_special_tokens", false},
                     {"return_token_ids", true},
                     {"return_tokens_as_token_ids", true}};
  for (const auto& [key, value] : rest.items()) CHECK_MESSAGE(body.at(key) == value, key, ": ", body.at(key).dump());
  CHECK(body.at("seed").get<uint64_t>() < uint64_t{1} << 31);
}

TEST_CASE("every kind of server gives the same tokens and log-probs, asked as it wants to be") {
  const LetterModel model;
  struct Row {
    Kind kind;
    const char* form;
  };
  for (const Row& row :
       {Row{Kind::vllm, "token ids and vLLM's keys"}, Row{Kind::names, "token ids and vLLM's keys"},
        Row{Kind::llama, "token ids and vLLM's keys"}, Row{Kind::tensorrt, "token ids and TensorRT-LLM's keys"},
        Row{Kind::mlx, "text and vLLM's keys"}, Row{Kind::hosted, "text and OpenAI's keys"}}) {
    for (const bool logprobs : {true, false}) {
      CAPTURE(row.form);
      CAPTURE(logprobs);
      const FakeOpenai server(options(row.kind));
      Harness bridge(server, {{"logprobs", logprobs}}, model.section());
      const Wish wish = letters(1, 9);
      const Sample& sample = bridge.run({wish})[1];
      const auto [tokens, values] = said_to(wish);
      CHECK_MESSAGE(sample.finish == HEXAD_FINISH_LENGTH, sample.error, LogLines::all().text());
      CHECK(sample.tokens == tokens);
      if (logprobs) CHECK(sample.logprobs == values);
      CHECK(sample.logprobs.size() == tokens.size());
      if (!logprobs) CHECK(std::ranges::all_of(sample.logprobs, [](float value) { return value == 0; }));
      CHECK(LogLines::all().has(std::string("asked with ") + row.form));
      const bool by_text = row.kind == Kind::hosted ||
                           (!logprobs && (row.kind == Kind::names || row.kind == Kind::llama || row.kind == Kind::mlx));
      CHECK(LogLines::all().has("tells no token ids: its text is tokenised again") == by_text);
    }
  }
}

TEST_CASE("openai_cfg.prompt says how prompts are sent") {
  const LetterModel model;
  const FakeOpenai server(options(Kind::llama));
  Harness bridge(server, {{"prompt", "text"}}, model.section());
  CHECK(bridge.run({letters(1, 5)})[1].tokens == said_to(letters(1, 5)).first);
  CHECK(server.samples().at(0).at("prompt") == "abc");
  Harness ids(server, {{"prompt", "token_ids"}}, model.section());
  ids.run({letters(2, 5)});
  CHECK(server.samples().back().at("prompt") == Json({4, 5, 6}));
}

TEST_CASE("a prompt that no text is tokenised to, and keys that a server does not take, are refused by name") {
  const LetterModel model;
  const FakeOpenai server(options(Kind::hosted));
  Harness bridge(server, {}, model.section());
  Wish unknown = letters(1, 5), filtered = letters(2, 5), good = letters(3, 5);
  unknown.prompt = {4, 11, 700};
  filtered.top_k = 3;
  CHECK_THROWS_WITH_AS(bridge.submit({unknown}), doctest::Contains("token 700 of the prompt is none of the model's 12"),
                       hexad::sdk::Error);
  bridge.run({filtered, good});
  CHECK(bridge.samples[2].finish == HEXAD_FINISH_ERROR);
  CHECK(bridge.samples[2].error.starts_with("it has top_k, min_p or ignore_eos, and OpenAI server 0 ("));
  CHECK(bridge.samples[2].error.ends_with(
      "takes none of top_k, min_p and ignore_eos: leave them out of policy.generation"));
  CHECK(bridge.samples[3].tokens == said_to(good).first);
  const LetterModel merges(true);
  Harness other(server, {}, merges.section());
  Wish apart = letters(1, 5);  // "abc", of which that tokenizer makes 12 6
  CHECK(other.run({apart})[1].error.starts_with("its prompt is the tokens of no text, and OpenAI server 0 ("));
  CHECK(
      other.samples[1].error.ends_with("is asked with text: wanted a prompt of which the tokenizer makes the same "
                                       "tokens again, or a server that takes token ids"));
}

TEST_CASE("a sample ends at the first stop token and stop string, whether its server knows them or not") {
  const LetterModel model;
  const Wish plain = letters(1, 9);
  const std::vector<int32_t> all = said_to(plain).first;
  for (const Kind kind : {Kind::vllm, Kind::hosted}) {
    const FakeOpenai server(options(kind));
    Harness bridge(server, {}, model.section());
    Wish stops = letters(2, 9);
    stops.stop_token_ids = {all[3]};
    const auto first = std::ranges::find(all, all[3]) - all.begin() + 1;
    const Sample& sample = bridge.run({stops})[2];
    CHECK(sample.finish == HEXAD_FINISH_STOP);
    CHECK(sample.tokens == std::vector<int32_t>(all.begin(), all.begin() + first));
    CHECK(sample.logprobs.size() == sample.tokens.size());
  }
}

TEST_CASE("updates of weights send nothing, and running requests go on") {
  const FakeOpenai server({.token_ms = 20});
  Harness bridge(server);
  Wish wish;
  wish.id = 1, wish.max_new_tokens = 30;
  bridge.submit({wish});
  REQUIRE(soon([&] { return !server.samples().empty(); }));
  bridge.update(7, 0.5f);
  check_sample(wish, bridge.finish()[1]);
  CHECK(bridge.samples[1].spans == std::vector<std::pair<int64_t, int64_t>>{{0, 0}});
  CHECK(server.samples().size() == 1);
  hexad_generator_info info{};
  bridge->describe(bridge.service(), info);
  CHECK(info.caps == HEXAD_GEN_UPDATE_INFLIGHT);
  using Table = hexad::sdk::GeneratorThunks<hexad::openai::Generator>;
  const bool sleeps = Table::table.sleep != nullptr, pauses = Table::table.pause != nullptr;
  CHECK_FALSE(sleeps);
  CHECK_FALSE(pauses);
}

TEST_CASE("a cancelled request ends here and at its server") {
  const FakeOpenai server({.token_ms = 50});
  Harness bridge(server);
  Wish wish;
  wish.id = 1, wish.max_new_tokens = 400;
  bridge.submit({wish});
  REQUIRE(soon([&] { return !server.samples().empty(); }));
  const std::vector<uint64_t> ids = {1};
  bridge->cancel(bridge.service(), ids);
  CHECK(bridge.finish(10)[1].finish == HEXAD_FINISH_ABORT);
}
