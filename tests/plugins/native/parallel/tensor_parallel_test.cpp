// Several ranks run one copy of the model: they draw what one rank draws, whatever happens meanwhile.
#include <thread>

#include "plugins/native/model/weight_sums.hpp"
#include "tests/plugins/native/support/ranks.hpp"
#include "tests/plugins/native/support/reference.hpp"

using namespace native_test;
using rank_process::run;

namespace {

// Eight heads, and a vocabulary of 97 that no number of ranks divides.
nlohmann::json sizes(int64_t kv_heads) {
  return {{"num_attention_heads", 8}, {"num_key_value_heads", kv_heads}, {"head_dim", 6}, {"intermediate_size", 60}};
}

// A generator of this rank's replica beside one that is alone.
struct Both {
  TinyModel model;
  Harness one, many;
  Both(const std::string& family, int64_t kv_heads, int64_t ranks, const std::string& precision = "float32")
      : model(family, true, sizes(kv_heads)),
        one(tight(model, precision)),
        many(shared_by(tight(model, precision), model.config, ranks)) {}
};

std::vector<Ask> asks_of_every_kind() {
  std::vector<Ask> asks = groups_of_samples(8, 4);
  for (Ask& ask : asks) {
    if (ask.id % 4 == 1) ask.temperature = 0;
    if (ask.id % 4 == 2) ask.temperature = 0.7, ask.top_k = 20, ask.top_p = 0.9;
    if (ask.id % 5 == 0) ask.stop_token_ids = {5, 17, 40, 41, 42};
    if (ask.id % 5 == 1) ask.stop_strings = {"Bc", "d"};
  }
  return asks;
}

// Groups that share prompts, chunks of prompts, and a cache that is too small for all that run.
void same_draws(const Rank& rank) {
  become(rank);
  // With two key/value heads four ranks hold each of them twice.
  const std::vector<std::pair<std::string, int64_t>> models = {
      {"llama", 4}, {"mistral", 4}, {"qwen2", 2}, {"qwen3", 2}};
  for (const auto& [family, kv_heads] : models) {
    CAPTURE(family);
    Both both(family, kv_heads, rank.world);
    const std::vector<Ask> asks = asks_of_every_kind();
    check_same(both.many.run(asks), both.one.run(asks));
    CHECK(both.many->preemptions() > 0);
    CHECK(both.many->preemptions() == both.one->preemptions());
    // Without filters no rank sees a whole row of logits.
    std::vector<Ask> plain = groups_of_samples(8, 4);
    for (Ask& ask : plain) ask.temperature = 0.6 * double(ask.id % 3);
    check_same(both.many.run(plain), both.one.run(plain));
  }
}

// The same calls at the same pass, while the other ranks are late.
void disturb(Harness& generator, const Rank& rank, const TinyModel& model, const Weights& other, bool late) {
  std::vector<Ask> asks = groups_of_samples(6, 4);
  for (Ask& ask : asks) ask.max_new_tokens = 40;
  const auto passes = [&](int count) {
    if (late) std::this_thread::sleep_for(std::chrono::milliseconds(7 * rank.rank));
    while (count-- > 0) generator.poll(0);
  };
  generator.submit(asks);
  passes(9);
  const uint64_t cancelled[] = {1, 20, 999};  // running, waiting, unknown
  generator->cancel(generator.service(), cancelled);
  passes(5);
  generator->pause(generator.service());
  passes(2);
  generator->resume(generator.service());
  generator->sleep(generator.service(), 1);
  passes(2);
  generator->wake(generator.service());
  passes(20);
  generator.update(other, 5);  // while they run
  passes(20);
  generator->sleep(generator.service(), 2);
  generator->wake(generator.service());
  passes(2);
  generator.update(model.weights, 6);
  passes(15);
  generator->flush_cache(generator.service());
  generator.run();
}

void same_through_all(const Rank& rank) {
  become(rank);
  for (const std::string family : {"llama", "qwen2"}) {
    CAPTURE(family);
    Both both(family, 4, rank.world);
    const Weights other = random_weights(both.model.config, 8);
    disturb(both.one, rank, both.model, other, false);
    disturb(both.many, rank, both.model, other, true);
    check_same(both.many.answers, both.one.answers);
    CHECK(both.many.answers.at(20).finish == HEXAD_FINISH_ABORT);
  }
}

// A thread that polls beside one that updates, at times that are each rank's own: rank 0's count.
void in_threads(const Rank& rank) {
  become(rank);
  const TinyModel model("qwen3", true, sizes(4));
  Harness generator(shared_by(tight(model), model.config, rank.world));
  std::vector<Ask> asks = groups_of_samples(8, 4);
  for (Ask& ask : asks) ask.max_new_tokens = 40;
  generator.submit(asks);
  std::thread poller([&] { generator.run(); });
  const Weights other = random_weights(model.config, 8);
  for (int64_t version = 1; version <= 4; ++version) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 11 * ((rank.rank + version) % 3)));
    generator->sleep(generator.service(), 1);  // what is in the cache is the old weights'
    generator.update(version % 2 ? other : model.weights, version);
    generator->wake(generator.service());
  }
  poller.join();
  Gap gap;
  int64_t spans = 0;
  for (const Ask& ask : asks) {
    const Answer& answer = generator.answers.at(ask.id);
    CHECK(answer.tokens.size() == 40);
    std::vector<int32_t> tokens = ask.prompt;
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    spans += static_cast<int64_t>(answer.spans.size());
    for (size_t i = 0; i < answer.spans.size(); ++i) {
      const auto [start, version] = answer.spans[i];
      const size_t end = i + 1 < answer.spans.size() ? size_t(answer.spans[i + 1].first) : answer.tokens.size();
      const std::vector<float> want = full_forward(model.config, version % 2 ? other : model.weights, tokens);
      for (size_t t = size_t(start); t < end; ++t) gap.add(answer.logprobs[t], want[ask.prompt.size() + t]);
    }
  }
  CHECK(spans > int64_t(asks.size()));
  CHECK(gap.largest < 2e-5);
}

// What a trainer sends, whole or in slices that no rank's part begins or ends with, reaches every rank's part.
void refit(const Rank& rank) {
  become(rank);
  for (const auto& [family, precision] : std::vector<std::pair<std::string, std::string>>{
           {"qwen2", "float32"}, {"llama", "bfloat16"}, {"mistral", "bfloat16"}}) {
    CAPTURE(family);
    Both both(family, 2, rank.world, precision);
    CHECK(reported_sums(both.many) == reported_sums(both.one));
    const Weights other = random_weights(both.model.config, 8);
    both.one.update(other, 3);
    both.many->update_begin(both.many.service(), 3);
    for (const auto& [name, weight] : other) {
      const std::vector<int64_t> shape = weight.sizes().vec();
      for (int64_t row = 0; row < shape[0]; row += 7) {
        std::vector<int64_t> offsets(shape.size(), 0);
        offsets[0] = row;
        both.many.send(name, weight.narrow(0, row, std::min<int64_t>(7, shape[0] - row)), shape, offsets);
      }
    }
    both.many->update_end(both.many.service(), true);
    const auto sums = reported_sums(both.many);
    CHECK(sums == reported_sums(both.one));
    CHECK(sums.size() == both.model.weights.size());
    const std::vector<Ask> asks = groups_of_samples(3, 3);
    if (precision == "float32") check_same(both.many.run(asks), both.one.run(asks));
    both.many->sleep(both.many.service(), 2);
    CHECK(reported_sums(both.many).empty());
    both.many->wake(both.many.service());
    both.many.update(both.model.weights, 4);
    both.one.update(both.model.weights, 4);
    CHECK(reported_sums(both.many) == reported_sums(both.one));
  }
}

void bf16(const Rank& rank) {
  become(rank);
  const TinyModel model("qwen3", true, sizes(4));
  Harness generator(shared_by(tight(model, "bfloat16"), model.config, rank.world));
  const std::vector<Ask> asks = groups_of_samples(8, 4);
  const auto answers = generator.run(asks);
  const Weights rounded = in_dtype(model.weights, at::kBFloat16);
  Gap gap;
  for (const Ask& ask : asks) {
    std::vector<int32_t> tokens = ask.prompt;
    const Answer& answer = answers.at(ask.id);
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    const std::vector<float> want = full_forward(model.config, rounded, tokens);
    for (size_t t = 0; t < answer.tokens.size(); ++t) gap.add(answer.logprobs[t], want[ask.prompt.size() + t]);
  }
  CHECK(gap.mult_prob_error() < 1.02);
}

// Two replicas of two ranks: each serves requests of its own.
void two_replicas(const Rank& rank) {
  become(rank);
  Both both("llama", 4, 2);
  std::vector<Ask> asks = groups_of_samples(48, 3);  // more than one message of a turn has room for
  for (Ask& ask : asks) ask.max_new_tokens = 3;
  std::erase_if(asks, [&](const Ask& ask) { return int64_t(ask.group % 2) != rank.rank / 2; });
  check_same(both.many.run(asks), both.one.run(asks));
}

// The text of the error that ends the polls.
std::string end_of(Harness& generator) {
  try {
    generator.run();
  } catch (const hexad::sdk::Error& error) {
    CHECK(error.code() != HEXAD_OK);
    return error.what();
  }
  return "nothing was thrown";
}

constexpr int64_t kTimeoutMs = 3000;

// The last rank ends in the middle.
void lose_one(const Rank& rank) {
  become(rank, kTimeoutMs);
  Both both("llama", 4, rank.world);
  both.many.submit(groups_of_samples(8, 4));
  for (int i = 0; i < 10; ++i) both.many.poll(0);
  if (rank.rank == rank.world - 1) ::_exit(0);
  const auto began = std::chrono::steady_clock::now();
  const std::string error = end_of(both.many);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  MESSAGE(error);
  CHECK(seconds < 2 * double(kTimeoutMs) / 1000 + 4);
  CHECK(error.find("over group 'tp.generator0' of ranks [0, 1") != std::string::npos);
  CHECK(error.find(fmt::format("missing: rank {} (no answer: it ended, or was stopped)", rank.world - 1)) !=
        std::string::npos);
}

// The second rank was given a request that is another one, or one fewer: all hear of it before any runs it.
void differ(const Rank& rank) {
  become(rank, kTimeoutMs);
  Both both("llama", 4, rank.world);
  std::vector<Ask> asks = groups_of_samples(2, 4);
  if (rank.rank == 1) {
    Ask& ask = asks[3];
    if (rank.argument == "prompt") ask.prompt.push_back(7);
    if (rank.argument == "group") ask.group = 1;
    if (rank.argument == "seed") ++ask.seed;
    if (rank.argument == "stop") ask.stop_token_ids = {1 << 20};  // which is never drawn
    if (rank.argument == "request") asks.erase(asks.begin() + 3);
  }
  both.many.submit(asks);
  const auto began = std::chrono::steady_clock::now();
  const std::string error = end_of(both.many);
  MESSAGE(error);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::milliseconds(kTimeoutMs));
  const std::string prefix = "rank 1 of group 'tp.generator0' of ranks [0, 1]: request 3";
  if (rank.argument == "request") {
    CHECK(error == prefix + ", which rank 0 runs, was not submitted here: submit the same requests to every rank");
  } else {
    CHECK(error.starts_with(prefix + " is not what rank 0 was given under this number (digest "));
    CHECK(error.ends_with("): submit the same requests to every rank"));
  }
}

// The second rank's tokens have other texts, so it does not see a stop string.
void stop_otherwise(const Rank& rank) {
  become(rank, kTimeoutMs);
  Both both("llama", 4, rank.world);
  std::vector<Ask> asks = groups_of_samples(2, 4);
  for (Ask& ask : asks) ask.stop_strings = {"d"};
  if (rank.rank == 1) both.many.context().detokenize = [](std::span<const int32_t>) { return std::string(); };
  both.many.submit(asks);
  const std::string error = end_of(both.many), group = "group 'tp.generator0' of ranks [0, 1]";
  MESSAGE(error);
  if (rank.rank == 0) {
    CHECK(error.find("over " + group + " failed; missing: rank 1") != std::string::npos);
  } else {
    CHECK(error.starts_with(group + ": rank 1 of it has drawn other tokens than rank 0, or ended a request otherwise ("
                                    "digest "));
    CHECK(error.ends_with("): wanted the same weights, tokenizer and settings on every rank"));
  }
}

std::string refused(const Json& section) {
  return refusal(HEXAD_INVALID_ARGUMENT, [&] { Harness generator(section); });
}

// What cannot be shared is refused by every rank.
void refusals(const Rank& rank) {
  become(rank);
  const auto section = [](const TinyModel& model, int64_t ranks, const std::string& precision = "float32") {
    return Json{
        {"model_name", model.path()}, {"precision", precision}, {"native_cfg", {{"tensor_parallel_size", ranks}}}};
  };
  const TinyModel tiny("llama"), even("llama", true, sizes(4)), experts("qwen3_moe", true, sizes(4));
  CHECK(refused(section(even, 0)) == "native_cfg.tensor_parallel_size: got 0, wanted at least 1");
  CHECK(refused(section(even, 3)) ==
        "native_cfg.tensor_parallel_size: got 3, wanted a divisor of the 2 ranks of the run");
  CHECK(refused(section(tiny, 2)) ==
        "tensor parallel size 2 does not divide intermediate_size = 59; sizes that do: 1, 59");
  const std::string half = refused(section(even, 2, "float16"));
  CHECK_MESSAGE(
      half.starts_with("native_cfg.tensor_parallel_size: 2 ranks of CPUs cannot share model_type 'llama' with a "
                       "width of 36, 8 heads of 6 and an MLP of 60 in Half; wanted a dense model, on CPUs in "
                       "float32 or bfloat16, on GPUs in bfloat16"),
      half);
  CHECK(refused(section(experts, 2))
            .starts_with("native_cfg.tensor_parallel_size: 2 ranks of CPUs cannot share model_type 'qwen3_moe'"));
}

const bool added = backend_test::add_scenarios({{"same_draws", same_draws},
                                                {"same_through_all", same_through_all},
                                                {"in_threads", in_threads},
                                                {"refit", refit},
                                                {"bf16", bf16},
                                                {"two_replicas", two_replicas},
                                                {"lose_one", lose_one},
                                                {"differ", differ},
                                                {"stop_otherwise", stop_otherwise},
                                                {"refusals", refusals}});

}  // namespace

TEST_CASE("ranks that share a model draw what one rank draws: groups, chunks, preemption, greedy and filtered") {
  for (const int ranks : {2, 4}) run("same_draws", ranks);
}

TEST_CASE("so they do through cancelled samples, pause, sleep, and new weights, when some ranks are late") {
  for (const int ranks : {2, 4}) run("same_through_all", ranks);
}

TEST_CASE("of ranks that are updated and polled by different threads, the first decides when") { run("in_threads", 2); }

TEST_CASE("an update reaches each rank's part, and the ranks' checksums are those of the whole weights") {
  for (const int ranks : {2, 4}) run("refit", ranks);
}

TEST_CASE("in bf16 ranks that share a model are within its rounding") { run("bf16", 2); }

TEST_CASE("four ranks are two replicas of two") { run("two_replicas", 4); }

TEST_CASE("a rank that ends is named, with its group, within the deadline") {
  for (const int ranks : {2, 4}) run("lose_one", ranks);
}

TEST_CASE("a rank that is given other requests is named on every rank before one of them runs") {
  for (const char* difference : {"prompt", "group", "seed", "stop", "request"}) run("differ", 2, difference);
}

TEST_CASE("a rank that ends its requests otherwise is named before the next pass") { run("stop_otherwise", 2); }

TEST_CASE("what ranks cannot share is refused") { run("refusals", 2); }
