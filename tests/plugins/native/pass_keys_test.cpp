// What native_cfg says of forward passes, by the passes themselves.
#include <set>

#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;

namespace {

using Passes = std::vector<std::set<uint64_t>>;  // for each pass the requests that drew a token in it

Passes passes(const Json& native_cfg, std::vector<Ask> asks) {
  const TinyModel model("llama");
  Harness generator({{"model_name", model.path()}, {"native_cfg", native_cfg}});
  for (Ask& ask : asks) ask.flags |= HEXAD_REQUEST_STREAM;
  generator.submit(asks);
  Passes result;
  size_t ended = 0;
  while (ended < asks.size()) {
    REQUIRE(result.size() < 20);
    generator.poll(0);
    std::set<uint64_t>& drew = result.emplace_back();
    for (const auto& [id, answer] : generator.partial) drew.insert(id);
    for (const auto& [id, answer] : generator.answers) drew.insert(id);
    ended += generator.answers.size();
    generator.partial.clear(), generator.answers.clear();
  }
  return result;
}

// Requests of `tokens` new tokens each, all of one group or each of its own.
std::vector<Ask> asks(uint64_t count, int64_t prompt, int64_t tokens, bool grouped = false) {
  std::vector<Ask> result;
  for (uint64_t id = 0; id < count; ++id) {
    const uint64_t group = grouped ? 0 : id;
    result.push_back(
        {.id = id, .prompt = random_prompt(group, prompt), .max_new_tokens = tokens, .group = group, .seed = id});
  }
  return result;
}

}  // namespace

TEST_CASE("max_num_seqs requests run at once, and the others wait") {
  CHECK((passes({{"max_num_seqs", 2}}, asks(3, 4, 2)) == Passes{{0, 1}, {0, 1}, {2}, {2}}));
}

TEST_CASE("a pass has max_num_batched_tokens tokens at most") {
  CHECK((passes({{"max_num_batched_tokens", 4}}, asks(1, 10, 2)) == Passes{{}, {}, {0}, {0}}));
}

TEST_CASE("without enable_chunked_prefill a prompt runs whole, whatever the most tokens of a pass") {
  const Json whole = {{"max_num_batched_tokens", 4}, {"enable_chunked_prefill", false}};
  CHECK((passes(whole, asks(2, 10, 1)) == Passes{{0}, {1}}));
}

TEST_CASE("without enable_prefix_sharing every sample of a group computes its own prompt") {
  const Json one = {{"max_num_batched_tokens", 10}},
             each = {{"max_num_batched_tokens", 10}, {"enable_prefix_sharing", false}};
  CHECK((passes(one, asks(3, 10, 1, true)) == Passes{{0, 1, 2}}));
  CHECK((passes(each, asks(3, 10, 1, true)) == Passes{{0}, {1}, {2}}));
}
