// The inbox alone: a fleet without servers keeps what is submitted, and the test writes the events.
#include "plugins/server_bridge/inbox.hpp"

#include <atomic>
#include <thread>

#include "plugins/vllm_bridge/dialect.hpp"
#include "tests/plugins/server_bridge/support/logging_host.hpp"
#include "tests/plugins/server_bridge/support/wish.hpp"

using namespace bridge_test;
using namespace hexad::bridge;

namespace {

struct Box {
  explicit Box(int64_t max_length = 100) { settings.max_length = max_length, settings.model_name = "/the/model"; }

  void submit(const std::vector<Wish>& wishes) { inbox.submit(Requests(wishes).pointers()); }

  // As the loop would: an event with these tokens.
  void put(uint64_t id, int32_t finish, std::vector<int32_t> tokens) {
    auto event = std::make_unique<Event>();
    event->logprobs.assign(tokens.size(), -1);
    if (!tokens.empty()) event->spans = {{0, 7}};
    event->tokens = std::move(tokens);
    event->seal(id, finish);
    finish == HEXAD_FINISH_NONE ? outbox.put_partial(std::move(event)) : outbox.put_final(std::move(event));
  }

  // "ID:FINISH:TOKENS" of each event, released at once.
  std::vector<std::string> poll(int64_t timeout_ms = 0) {
    std::vector<const hexad_completion*> events(8);
    const auto count = static_cast<size_t>(inbox.poll(host.service(), events, timeout_ms));
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) {
      std::string text = std::to_string(events[i]->id) + ":" + std::to_string(events[i]->finish) + ":";
      for (int64_t t = 0; t < events[i]->count; ++t) text += std::to_string(events[i]->tokens[t]) + " ";
      texts.push_back(text + (events[i]->error ? events[i]->error : ""));
    }
    inbox.release({events.data(), count});
    return texts;
  }

  HostCall host;
  Settings settings;
  Outbox outbox;
  EventLoop loop;
  const hexad::vllm::Dialect dialect{Seconds(1), ""};
  Fleet fleet{loop, dialect, settings, outbox, [](int32_t, const std::string&) {}};
  StopsLoop before_fleet{loop};
  std::atomic<bool> weights_expected{true};
  Inbox inbox{settings, loop, fleet, outbox, [this] { return weights_expected.load(); }};
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("inbox: of requests with an id that is running none is taken, and an id is free after its last event") {
  Box box;
  box.submit({{.id = 1}});
  for (const std::vector<Wish>& twice : {std::vector<Wish>{{.id = 2}, {.id = 1}}, {{.id = 3}, {.id = 3}}}) {
    CHECK_THROWS_WITH_AS(box.submit(twice), doctest::Contains("its id is that of a running request"),
                         hexad::sdk::Error);
  }
  box.put(1, HEXAD_FINISH_LENGTH, {5});
  CHECK(box.poll() == Texts{"1:2:5 "});
  box.submit({{.id = 1}, {.id = 2}, {.id = 3}});
}

TEST_CASE("inbox: a prompt that leaves no room ends at once with the numbers, and the others run") {
  Box box(/*max_length=*/3);
  box.submit({{.id = 1}, {.id = 2, .prompt = {1}}});
  CHECK(box.poll() == Texts{"1:4:a prompt of 3 tokens leaves no room within the 3 of a sequence"});
  const uint64_t id = 2;
  box.inbox.cancel({&id, 1});
  CHECK(box.poll(10'000) == Texts{"2:3:"});
}

TEST_CASE("inbox: partial events are for those who asked, and the last one is not waited for after a stop string") {
  Box box;
  box.submit({{.id = 1, .flags = HEXAD_REQUEST_STREAM}, {.id = 2}, {.id = 3, .stop_strings = {"cd"}}});
  for (const uint64_t id : {1, 2, 3}) box.put(id, HEXAD_FINISH_NONE, {1, 2});  // "bc"
  CHECK(box.poll() == Texts{"1:0:1 2 "});
  box.put(3, HEXAD_FINISH_NONE, {1, 2, 3, 4});
  CHECK(box.poll() == Texts{"3:1:1 2 3 "});
  box.put(3, HEXAD_FINISH_LENGTH, {1, 2, 3, 4, 5});  // it was under way
  box.put(2, HEXAD_FINISH_LENGTH, {1, 2, 3});
  CHECK(box.poll() == Texts{"2:2:1 2 3 "});
}

TEST_CASE("inbox: an event is the host's until it is released, whatever comes after") {
  Box box;
  box.submit({{.id = 1}, {.id = 2}});
  box.put(1, HEXAD_FINISH_LENGTH, {5, 6});
  std::vector<const hexad_completion*> events(1);
  REQUIRE(box.inbox.poll(box.host.service(), events, 0) == 1);
  box.put(2, HEXAD_FINISH_LENGTH, {7});
  CHECK(box.poll() == Texts{"2:2:7 "});
  CHECK(events[0]->tokens[1] == 6);
  CHECK(events[0]->spans[0].version == 7);
  box.inbox.release(events);
}

TEST_CASE("inbox: trouble fails a poll while requests run, and not before or after") {
  Box box;
  box.outbox.set_trouble("nobody is there");
  CHECK(box.poll().empty());
  box.submit({{.id = 1}});
  CHECK_THROWS_WITH_AS(box.poll(10'000), "nobody is there", hexad::sdk::Error);
  box.outbox.set_trouble("");
  CHECK(box.poll().empty());
}

TEST_CASE("inbox: requests that no weights will come for fail the poll when its time is up") {
  Box box;
  box.weights_expected = false;
  CHECK(box.poll().empty());
  box.submit({{.id = 1}});
  CHECK_THROWS_WITH_AS(box.poll(), doctest::Contains("there are no weights: /the/model has none"), hexad::sdk::Error);
  box.weights_expected = true;
  CHECK(box.poll().empty());
}

TEST_CASE("inbox: many threads submit and cancel while one polls: every request ends once") {
  Box box;
  constexpr uint64_t kThreads = 4, kEach = 50;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&box, t] {
      for (uint64_t id = t * kEach; id < (t + 1) * kEach; ++id) {
        box.submit({{.id = id}});
        box.inbox.cancel({&id, 1});
      }
    });
  }
  std::vector<int> ended(kThreads * kEach);
  for (size_t left = ended.size(); left > 0;) {
    const Texts texts = box.poll(10'000);
    if (texts.empty()) break;
    for (const std::string& text : texts) ++ended[std::stoul(text)];
    left -= texts.size();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::ranges::all_of(ended, [](int times) { return times == 1; }));
}
