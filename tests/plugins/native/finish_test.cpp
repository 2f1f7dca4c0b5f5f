// How completions end, and what streaming shows of them.
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;

namespace {

// Names of sampled tokens; letters() tells their text.
struct Fixture {
  TinyModel model{"llama"};  // its end of sequence is token 0
  Harness generator{{{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 0.001}}}}};
  Ask ask{.id = 1, .prompt = random_prompt(3, 6), .max_new_tokens = 40, .seed = 11};

  Answer run(const Ask& request) { return generator.run({request}).at(request.id); }
};

// The first index from `from` on whose token did not occur before.
size_t first_of_its_kind(const std::vector<int32_t>& tokens, size_t from) {
  while (std::find(tokens.begin(), tokens.begin() + from, tokens[from]) != tokens.begin() + from) ++from;
  return from;
}

std::vector<int32_t> first(const std::vector<int32_t>& tokens, size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<int64_t>(count)};
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a stop token ends a completion and is kept") {
  const Answer whole = run(ask);
  CHECK(whole.finish == HEXAD_FINISH_LENGTH);
  REQUIRE(whole.tokens.size() == 40);
  CHECK(whole.logprobs.size() == 40);
  const size_t at = first_of_its_kind(whole.tokens, 9);
  ask.stop_token_ids = {96, whole.tokens[at]};
  const Answer stopped = run(ask);
  CHECK(stopped.finish == HEXAD_FINISH_STOP);
  CHECK(stopped.tokens == first(whole.tokens, at + 1));
  CHECK(stopped.logprobs.size() == at + 1);
}

TEST_CASE_FIXTURE(Fixture, "the model's end of sequence ends a completion unless ignored") {
  // Let a token that is sampled be the end of sequence.
  const Answer whole = run(ask);
  const size_t at = first_of_its_kind(whole.tokens, 7);
  auto config = tiny_config("llama");
  config["eos_token_id"] = {whole.tokens[at], 96};
  hexad::modeling::write_file(std::filesystem::path(model.path()) / "config.json", config.dump());
  Harness other({{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 0.001}}}});
  CHECK(other.run({ask}).at(1) == whole);
  ask.flags = 0;
  const Answer stopped = other.run({ask}).at(1);
  CHECK(stopped.finish == HEXAD_FINISH_STOP);
  CHECK(stopped.tokens == first(whole.tokens, at + 1));
}

TEST_CASE_FIXTURE(Fixture, "a stop string ends a completion where its last token is complete") {
  const Answer whole = run(ask);
  const std::string text = letters(whole.tokens);
  for (const size_t length : {1, 2, 5, 9}) {
    for (const size_t from : {0, 3, 17, 30}) {
      const std::string stop = text.substr(from, length);
      CAPTURE(stop);
      ask.stop_strings = {"####", stop};
      const Answer stopped = run(ask);
      CHECK(stopped.finish == HEXAD_FINISH_STOP);
      // The shortest run of tokens whose text has it.
      size_t count = 1;
      while (letters(first(whole.tokens, count)).find(stop) == std::string::npos) ++count;
      CHECK(stopped.tokens == first(whole.tokens, count));
    }
  }
  ask.stop_strings = {letters(ask.prompt).substr(0, 4)};  // text of the prompt does not count
  CHECK(run(ask).tokens.size() >= 1);
}

TEST_CASE_FIXTURE(Fixture, "a host that cannot turn tokens into text ends a request with stop strings, and no other") {
  generator.context().detokenize = nullptr;
  Ask other = ask;
  other.id = 2;
  ask.stop_strings = {"x"};
  const auto answers = generator.run({ask, other});
  CHECK(answers.at(1).finish == HEXAD_FINISH_ERROR);
  CHECK(answers.at(1).error == "its stop strings need the text of its tokens: a host service failed");
  CHECK(answers.at(2).finish == HEXAD_FINISH_LENGTH);
}

TEST_CASE_FIXTURE(Fixture, "a completion ends where prompt and response reach the model's length") {
  Harness other({{"model_name", model.path()}, {"max_total_sequence_length", 20}});
  const Answer answer = other.run({ask}).at(1);
  CHECK(answer.finish == HEXAD_FINISH_LENGTH);
  CHECK(answer.tokens.size() == 20 - ask.prompt.size());
  ask.max_new_tokens = INT64_MAX;
  CHECK(other.run({ask}).at(1) == answer);
}

TEST_CASE_FIXTURE(Fixture, "greedy takes the most likely token, and tells its probability without temperature") {
  ask.temperature = 0, ask.top_p = 0.5;
  const Answer zero = run(ask);
  ask.temperature = 1.3, ask.top_p = 1, ask.flags |= HEXAD_REQUEST_GREEDY;
  CHECK(run(ask) == zero);
  ask.seed = 99;
  CHECK(run(ask) == zero);
}

TEST_CASE_FIXTURE(Fixture, "streaming shows every token once it is drawn, and the whole at the end") {
  ask.flags |= HEXAD_REQUEST_STREAM;
  const Answer whole = run(ask);
  REQUIRE(generator.partial.size() == 39);
  for (size_t i = 0; i < generator.partial.size(); ++i) {
    const auto& [id, partial] = generator.partial[i];
    CHECK(id == 1);
    CHECK(partial.finish == HEXAD_FINISH_NONE);
    CHECK(partial.tokens == first(whole.tokens, i + 1));
    CHECK(partial.logprobs.size() == i + 1);
    CHECK(partial.spans == whole.spans);
  }
  CHECK(whole.spans == std::vector<std::pair<int64_t, int64_t>>{{0, 0}});
}
