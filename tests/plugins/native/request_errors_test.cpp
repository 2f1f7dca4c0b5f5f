// Requests that are refused, and requests that can never run.
#include <limits>

#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;

namespace {

struct Fixture {
  TinyModel model{"qwen2"};
  Harness generator{{{"model_name", model.path()},
                     {"max_total_sequence_length", 400},
                     {"native_cfg", {{"kv_block_size", 4}, {"kv_cache_gb", kilobytes(30 * 1152)}}}}};
  Ask good{.id = 7, .prompt = {5, 6}, .max_new_tokens = 3};

  static double kilobytes(double bytes) { return (bytes + 100) / (1024.0 * 1024.0 * 1024.0); }
  std::string refused(const Ask& ask) {
    return refusal(HEXAD_INVALID_ARGUMENT, [&] { generator.submit({ask}); });
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a malformed request is refused with its id and what is wrong") {
  Ask ask = good;
  ask.prompt = {};
  CHECK(refused(ask) == "request 7: the prompt is empty");
  ask.prompt = {1, 97};
  CHECK(refused(ask) == "request 7: token 97 of the prompt is outside of the vocabulary of 97");
  ask.prompt = {-1};
  CHECK(refused(ask) == "request 7: token -1 of the prompt is outside of the vocabulary of 97");
  ask = good, ask.max_new_tokens = 0;
  CHECK(refused(ask) == "request 7: max_new_tokens must be at least 1, got 0");
  ask = good, ask.temperature = -1;
  CHECK(refused(ask) == "request 7: temperature must be in [0, 2], got -1");
  ask = good, ask.top_p = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused(ask) == "request 7: top_p must be in (0, 1], got nan (1 turns it off)");
  ask = good, ask.min_p = 2;
  CHECK(refused(ask) == "request 7: min_p must be in [0, 1], got 2 (0 turns it off)");
  ask = good, ask.top_k = -5;
  CHECK(refused(ask) == "request 7: top_k must be at least 1, or 0 to turn it off, got -5");
  ask = good, ask.stop_strings = {"a", ""};
  CHECK(refused(ask) == "request 7: a stop string is empty");
}

TEST_CASE_FIXTURE(Fixture, "one bad request refuses the whole call; an id is taken until its last event") {
  Ask bad = good;
  bad.id = 8, bad.max_new_tokens = -1;
  refusal(HEXAD_INVALID_ARGUMENT, [&] { generator.submit({good, bad}); });
  CHECK(generator.run({good}).size() == 1);  // so 7 was free
  generator.submit({good});
  CHECK(refused(good) == "request 7: its id is that of a running request");
  bad = good, bad.id = 9;
  CHECK(refusal(HEXAD_INVALID_ARGUMENT, [&] {
          generator.submit({bad, bad});
        }) == "request 9: its id is that of a running request");
  generator.answers.clear();
  generator.run();
  CHECK(generator.run({good}).at(7).tokens.size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "what can never run ends with an error event and leaves the others alone") {
  Ask too_long = good, too_large = good, fits = good;
  too_long.id = 1, too_long.prompt = random_prompt(1, 400);
  too_large.id = 2, too_large.prompt = random_prompt(1, 100), too_large.max_new_tokens = 30;
  fits.id = 3, fits.prompt = random_prompt(1, 100), fits.max_new_tokens = 21;  // the last token is never run
  const auto answers = generator.run({too_long, too_large, fits});
  CHECK(answers.at(1).finish == HEXAD_FINISH_ERROR);
  CHECK(answers.at(1).error ==
        "the prompt has 400 tokens, and prompt and response together may have 400 (max_total_sequence_length)");
  CHECK(answers.at(2).finish == HEXAD_FINISH_ERROR);
  CHECK(answers.at(2).error ==
        "prompt and response need 33 blocks of the KV cache (129 tokens), and it has 30 (120 tokens): raise "
        "native_cfg.kv_cache_gb or lower max_new_tokens");
  CHECK(answers.at(3).finish == HEXAD_FINISH_LENGTH);
  CHECK(answers.at(3).tokens.size() == 21);
}
