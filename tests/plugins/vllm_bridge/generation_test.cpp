// What is asked of servers, and what comes back, while nothing fails.
#include <fmt/format.h>
#include <sys/resource.h>

#include "tests/plugins/vllm_bridge/support/harness.hpp"
#include "tests/support/report.hpp"

using namespace vllm_test;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("samples come with tokens, log-probs and the version of the weights") {
  for (const bool tokens_api : {true, false}) {
    CAPTURE(tokens_api);
    FakeVllm server({.tokens_api = tokens_api});
    Harness bridge({&server});
    const auto wishes = many(8);
    auto& samples = bridge.run(wishes);
    for (const Wish& wish : wishes) {
      check_sample(wish, samples[wish.id]);
      CHECK(samples[wish.id].spans == std::vector<std::pair<int64_t, int64_t>>{{0, 0}});
    }
    CHECK(LogLines::all().has(tokens_api ? "/inference/v1/generate" : "/v1/completions"));
  }
}

TEST_CASE("every sampling key of a request reaches the server") {
  FakeVllm server;
  Harness bridge({&server});
  Wish wish;
  wish.temperature = 0.5, wish.top_p = 0.9, wish.top_k = 7, wish.min_p = 0.1, wish.max_new_tokens = 3;
  wish.stop_token_ids = {11, 12}, wish.flags = HEXAD_REQUEST_IGNORE_EOS;
  Wish greedy;
  greedy.id = 1, greedy.flags = HEXAD_REQUEST_GREEDY;
  bridge.run({wish, greedy});
  auto bodies = server.generations();
  std::erase_if(bodies, [](const Json& body) { return body.at("sampling_params").at("temperature") == 0; });
  REQUIRE(bodies.size() == 1);
  const Json& body = bodies[0];
  const Json& sampling = body.at("sampling_params");
  CHECK(body.at("token_ids") == Json({1, 2, 3}));
  CHECK(body.at("stream") == true);
  CHECK(sampling.at("temperature") == 0.5);
  CHECK(sampling.at("top_p") == 0.9);
  CHECK(sampling.at("top_k") == 7);
  CHECK(sampling.at("min_p") == 0.1);
  CHECK(sampling.at("max_tokens") == 3);
  CHECK(sampling.at("stop_token_ids") == Json({11, 12}));  // the model's end of text is ignored
  CHECK(sampling.at("ignore_eos") == true);
  CHECK(sampling.at("logprobs") == 0);
  CHECK(sampling.at("n") == 1);
  CHECK(sampling.at("seed").is_number_integer());
  CHECK(sampling.at("detokenize") == false);
  CHECK(bridge.samples[1].finish == HEXAD_FINISH_LENGTH);
}

TEST_CASE("a stop token ends a sample and is kept, the model's own end of text too") {
  FakeVllm server;
  Harness bridge({&server});
  Wish wish;
  wish.stop_token_ids = {undisturbed(wish).first[4]};
  const auto& samples = bridge.run({wish});
  check_sample(wish, samples.at(0), HEXAD_FINISH_STOP);
  CHECK(samples.at(0).tokens.size() == 5);
  CHECK(server.generations()[0].at("sampling_params").at("stop_token_ids") == Json({wish.stop_token_ids[0], 2}));
}

TEST_CASE("a stop string ends a sample at the token that completes it") {
  FakeVllm server({.token_ms = 2});
  Harness bridge({&server});
  Wish wish;
  wish.max_new_tokens = 400;
  const auto tokens = undisturbed(wish).first;
  std::string text;
  for (const int32_t id : tokens) text += static_cast<char>('a' + id % 26);
  wish.stop_strings = {text.substr(3, 4)};
  const size_t end = text.find(wish.stop_strings[0]) + 4;
  const auto& sample = bridge.run({wish}).at(0);
  CHECK(sample.finish == HEXAD_FINISH_STOP);
  CHECK(sample.tokens == std::vector<int32_t>(tokens.begin(), tokens.begin() + static_cast<int64_t>(end)));
  CHECK(sample.logprobs.size() == end);
  CHECK(sample.finals == 1);
  for (int i = 0; i < 200 && server.running() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(server.running() == 0);  // the server has stopped too
}

TEST_CASE("requests that stream are reported as they grow") {
  FakeVllm server({.token_ms = 5});
  Harness bridge({&server});
  Wish wish;
  wish.flags = HEXAD_REQUEST_STREAM;
  bridge.run({wish});
  REQUIRE(!bridge.partial.empty());
  size_t before = 0;
  for (const auto& [id, sample] : bridge.partial) {
    CHECK(sample.tokens.size() > before);
    before = sample.tokens.size();
  }
  check_sample(wish, bridge.samples.at(0));
}

TEST_CASE("a cancelled request ends at once with what it has, and stops at the server") {
  FakeVllm server({.token_ms = 10});
  Harness bridge({&server});
  Wish wish, other;
  wish.max_new_tokens = 2000, other.id = 1;
  bridge.submit({wish, other});
  while (server.running() < 2) bridge.poll(10);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const uint64_t ids[] = {0, 0, 12345};
  bridge->cancel(bridge.service(), ids);
  const auto& samples = bridge.finish();
  CHECK(samples.at(0).finish == HEXAD_FINISH_ABORT);
  CHECK(samples.at(0).finals == 1);
  CHECK(!samples.at(0).tokens.empty());
  check_sample(other, samples.at(1));
  for (int i = 0; i < 200 && server.running() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(server.running() == 0);
}

TEST_CASE("groups stay together, and servers are loaded alike") {
  FakeVllm first({.token_ms = 1}), second({.token_ms = 1});
  Harness bridge({&first, &second});
  while (!(LogLines::all().has(first.url()) && LogLines::all().has(second.url()))) bridge.poll(10);
  std::vector<Wish> wishes;
  for (int i = 0; i < 128; ++i) {
    Wish wish;
    wish.id = static_cast<uint64_t>(i), wish.group = static_cast<uint64_t>(i / 8);
    wish.prompt = {1, static_cast<int32_t>(5 + i / 8)};
    wishes.push_back(wish);
  }
  bridge.run(wishes);
  std::set<int32_t> prompts[2];
  const FakeVllm* servers[] = {&first, &second};
  for (int s = 0; s < 2; ++s) {
    for (const Json& body : servers[s]->generations()) prompts[s].insert(body.at("token_ids")[1].get<int32_t>());
    CHECK(servers[s]->generations().size() == 64);
  }
  for (const int32_t prompt : prompts[0]) CHECK(!prompts[1].contains(prompt));
}

TEST_CASE("a server gets no more requests at once than it may") {
  FakeVllm server({.token_ms = 1});
  Harness bridge({&server}, {{"max_running_requests", 3}});
  const auto wishes = many(20);
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  CHECK(server.most_running() <= 3);
}

TEST_CASE("more requests at once than this process may have open files are warned of") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_max > 1'000'000'000) return test_report::skipped("the limit of open files is too high to be reached");
  const std::string warning = fmt::format("this process may have {} open files, and 1 vLLM servers", limit.rlim_max);
  FakeVllm server;
  Harness(std::vector<const FakeVllm*>{&server});
  CHECK(!LogLines::all().has(warning));
  Harness({&server}, {{"max_running_requests", 1'000'000'000}});
  CHECK(LogLines::all().has(warning));
}

TEST_CASE("requests at once beyond one lane of connections") {
  FakeVllm server({.token_ms = 20});
  Harness bridge({&server}, {{"max_running_requests", 300}});
  for (int round = 0; round < 2; ++round) {
    auto wishes = many(300, 40);
    for (Wish& wish : wishes) wish.id += static_cast<uint64_t>(1000 * round);
    auto& samples = bridge.run(wishes);
    for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  }
  CHECK(server.most_running() > 128);
}

TEST_CASE("requests keep prefixes of other runs and weights apart by a salt") {
  FakeVllm server;
  Harness bridge({&server});
  bridge.run({Wish{}});
  const auto salt = [&] { return server.generations().back().at("cache_salt").get<std::string>(); };
  const std::string first = salt();
  bridge->flush_cache(bridge.service());
  bridge.run({Wish{.id = 1}});
  const std::string second = salt();
  bridge.update(3, 1.0f);
  bridge.run({Wish{.id = 2}});
  CHECK(first != second);
  CHECK(second != salt());
  CHECK(server.count("POST /reset_prefix_cache") == 2);
}

TEST_CASE("malformed requests are refused as a whole") {
  FakeVllm server;
  Harness bridge({&server});
  const auto refused = [&](Wish wish, const std::string& part) {
    wish.id = 5;
    CHECK_THROWS_WITH_AS(bridge.submit({Wish{.id = 4}, wish}), doctest::Contains(part.c_str()), hexad::sdk::Error);
  };
  refused({.prompt = {}}, "request 5: the prompt is empty");
  refused({.prompt = {-1}}, "token -1 of the prompt is negative");
  refused({.max_new_tokens = 0}, "max_new_tokens must be at least 1, got 0");
  refused({.temperature = -1}, "temperature must be at least 0");
  refused({.top_p = 0}, "top_p must be above 0");
  refused({.min_p = 2}, "min_p must be between 0 and 1");
  refused({.stop_strings = {""}}, "a stop string is empty");
  bridge.submit({Wish{.id = 1, .max_new_tokens = 4}});
  CHECK_THROWS_WITH_AS(bridge.submit({Wish{.id = 1}}), doctest::Contains("its id is that of a running request"),
                       hexad::sdk::Error);
  bridge.finish();
  CHECK(server.generations().size() == 1);
}

TEST_CASE("a prompt that leaves no room ends with an error event") {
  FakeVllm server;
  Harness bridge({&server}, Json::object(), {{"max_total_sequence_length", 8}});
  const auto& samples = bridge.run({Wish{.id = 0, .prompt = std::vector<int32_t>(8, 1)}, Wish{.id = 1}});
  CHECK(samples.at(0).finish == HEXAD_FINISH_ERROR);
  CHECK(samples.at(0).error == "a prompt of 8 tokens leaves no room within the 8 of a sequence");
  CHECK(samples.at(1).tokens.size() == 5);  // cut to what fits
}

TEST_CASE("a request that the server refuses ends with the server's words, and is not tried again") {
  FakeVllm server;
  Harness bridge({&server});
  server.inject([](const Json&) { return Fault{.kind = Fault::status, .code = 400}; });
  const auto& samples = bridge.run({Wish{}});
  CHECK(samples.at(0).finish == HEXAD_FINISH_ERROR);
  CHECK(samples.at(0).error.find("refused it with status 400: injected") != std::string::npos);
  CHECK(server.generations().size() == 1);
}

TEST_CASE("log-probs that are not of the distribution drawn from are refused") {
  FakeVllm server({.logprobs_mode = "raw_logprobs"});
  Harness bridge({&server});
  bridge.run({Wish{}});  // temperature 1 without filters: both modes agree
  const auto& refused = bridge.run({Wish{.id = 1, .temperature = 0.7}}).at(1);
  CHECK(refused.finish == HEXAD_FINISH_ERROR);
  CHECK(
      refused.error.find("has raw_logprobs: those log-probs are not of the distribution that is drawn from. Start the "
                         "server with --logprobs-mode processed_logprobs") != std::string::npos);
  FakeVllm silent({.dev_mode = false});
  Harness other({&silent});
  other.run({Wish{}});
  other.run({Wish{.id = 1, .top_k = 5}});
  CHECK(LogLines::all().has("does not say its logprobs_mode"));
}

TEST_CASE("a server that speculates on a CPU draws nothing but greedy samples") {
  const Json ngram = {{"method", "ngram"}, {"num_speculative_tokens", 3}};
  FakeVllm on_cpu({.device = "cpu", .speculation = ngram});
  Harness bridge({&on_cpu});
  CHECK(bridge.run({Wish{.flags = HEXAD_REQUEST_GREEDY}}).at(0).finish == HEXAD_FINISH_LENGTH);
  const auto& refused = bridge.run({Wish{.id = 1}}).at(1);
  CHECK(refused.finish == HEXAD_FINISH_ERROR);
  CHECK(refused.error.starts_with("it is not greedy, and vLLM server 0"));
  CHECK(refused.error.find("only greedy requests are right. Start it without speculative_config") != std::string::npos);
  CHECK(on_cpu.generations().size() == 1);
  // On a GPU, and without speculation, it draws.
  FakeVllm on_gpu({.speculation = ngram}), plain({.device = "cpu"});
  for (FakeVllm* server : {&on_gpu, &plain}) check_sample(Wish{}, Harness({server}).run({Wish{}}).at(0));
}

TEST_SUITE_END();
