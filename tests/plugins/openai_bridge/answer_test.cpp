// Answers by themselves, above all those whose tokens are told as text.
#include "plugins/openai_bridge/protocol/answer.hpp"

#include "tests/plugins/openai_bridge/support/harness.hpp"

using namespace openai_test;
using namespace hexad::openai;

namespace {

Json answer_of(const Json& choice) { return {{"choices", Json::array({choice})}}; }

Json texts(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return {{"text", text},
          {"finish_reason", "stop"},
          {"logprobs", {{"tokens", tokens}, {"token_logprobs", std::vector<double>(tokens.size(), -0.5)}}}};
}

std::string error_of(const Json& answer, const TextTokens& text, const Asked& asked) {
  try {
    read_answer(answer.dump(), asked, text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("tokens that are told as texts have log-probs only where each is a token of the run's model") {
  const LetterModel model(/*merges=*/true);
  const TextTokens text(model.path());
  const Asked asked{.prompt = 1, .most = 8, .logprobs = true};
  const hexad::bridge::Chunk chunk = read_answer(answer_of(texts({"ab", "c"})).dump(), asked, text);
  CHECK(chunk.tokens == std::vector<int32_t>{12, 6});
  CHECK(chunk.logprobs == std::vector<float>{-0.5f, -0.5f});
  CHECK(chunk.whole);
  CHECK(error_of(answer_of(texts({"a", "b"})), text, asked) ==
        "token 0 as 'a', which is 'ab' in the tokenizer of policy.model_name: its log-probs are of other tokens");
  CHECK(error_of(answer_of(texts({"ab", ""})), text, asked) ==
        "2 tokens, whose text has 1 in the tokenizer of policy.model_name: its log-probs are of other tokens");
  // Without log-probs the same text is a sample.
  CHECK(read_answer(answer_of(texts({"a", "b"})).dump(), {.prompt = 1, .most = 8}, text).tokens ==
        std::vector<int32_t>{12});
}

TEST_CASE("a text is tokenised only into ids that decode to it, at most as many as were asked for") {
  const LetterModel model;
  const TextTokens text(model.path());
  const Json choice = {{"text", "abcd"}, {"finish_reason", "stop"}};
  CHECK(read_answer(answer_of(choice).dump(), {.prompt = 1, .most = 8}, text).tokens ==
        std::vector<int32_t>{4, 5, 6, 7});
  const hexad::bridge::Chunk cut = read_answer(answer_of(choice).dump(), {.prompt = 1, .most = 3}, text);
  CHECK(cut.tokens == std::vector<int32_t>{4, 5, 6});
  CHECK(cut.finish == "length");
  const std::vector<int32_t> stops = {5};
  CHECK(read_answer(answer_of(choice).dump(), {.prompt = 1, .most = 8, .stop_ids = stops}, text).tokens ==
        std::vector<int32_t>{4, 5});
  const std::string foreign =
      error_of(answer_of({{"text", "axb"}, {"finish_reason", "stop"}}), text, {.prompt = 1, .most = 8});
  CHECK_MESSAGE(foreign.find("wanted the text of a model with that tokenizer") != std::string::npos, foreign);
  CHECK(error_of(answer_of({{"finish_reason", "stop"}}), text, {.prompt = 1, .most = 8})
            .starts_with("its sample has neither token ids nor a text"));
  const std::string none = error_of(answer_of(choice), TextTokens("/nowhere"), {.prompt = 1, .most = 8});
  CHECK_MESSAGE(none.starts_with("a text for which a tokenizer is needed (policy.generation.openai_cfg.tokenizer): "),
                none);
}

TEST_CASE("a sample of a text prompt that is too short cannot go on, and is an error") {
  const Json choice = {{"token_ids", {5, 6}}, {"text", ""}, {"finish_reason", "length"}};
  const TextTokens none;
  CHECK(error_of(answer_of(choice), none, {.prompt = 1, .most = 8, .text_prompt = true})
            .starts_with("it has stopped for length after 2 of 8 tokens"));
  CHECK(!read_answer(answer_of(choice).dump(), {.prompt = 1, .most = 8}, none).whole);
}

TEST_CASE("what cannot be an answer is none, however it is built") {
  const TextTokens none;
  for (const char* body : {"", "null", "[]", "{", "{\"choices\":0}", "{\"choices\":[0]}", "{\"choices\":[{}]}",
                           "{\"choices\":[{\"token_ids\":7}]}", "{\"choices\":[{\"logprobs\":[1]}]}",
                           "{\"choices\":[{\"logprobs\":{\"content\":5,\"tokens\":\"a\"}}]}"}) {
    CAPTURE(body);
    CHECK_THROWS_AS(read_answer(body, {.prompt = 1, .most = 8}, none), std::runtime_error);
    tells_by(body);
    CHECK(text_in(body) == "");
  }
}
