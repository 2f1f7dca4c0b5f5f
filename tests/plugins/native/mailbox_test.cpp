// What the host's threads and the engine hand each other, without an engine.
#include <thread>

#include "tests/plugins/native/support/stub_engine.hpp"

using namespace native_test;
using namespace hexad::native;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

using Ids = std::vector<uint64_t>;

Ids arrived_ids(const Mailbox::News& news) {
  Ids ids;
  for (const Arrival& arrival : news.arrived) ids.push_back(arrival.id);
  return ids;
}

Ids taken_ids(const Mailbox::Sequences& sequences) {
  Ids ids;
  for (const auto& sequence : sequences) ids.push_back(sequence->request.id);
  return ids;
}

void deliver(Mailbox& mailbox, const Ids& ids, int32_t finish) {
  std::vector<std::unique_ptr<Event>> events;
  for (const uint64_t id : ids) events.push_back(make_event(*sequence_of(id), finish));
  mailbox.deliver(std::move(events));
}

std::string running(uint64_t id) { return fmt::format("request {}: its id is that of a running request", id); }

// How long a poller that might wait for two seconds does so.
milliseconds waited(Mailbox& mailbox) {
  const auto began = Clock::now();
  mailbox.wait_until(began + std::chrono::seconds(2));
  return std::chrono::duration_cast<milliseconds>(Clock::now() - began);
}

}  // namespace

TEST_CASE("mailbox: requests with the id of a running one are refused, all of a call") {
  Mailbox mailbox;
  mailbox.submit(sequences_of({1, 2}));
  CHECK(refusal(HEXAD_INVALID_ARGUMENT, [&] { mailbox.submit(sequences_of({3, 2})); }) == running(2));
  CHECK(refusal(HEXAD_INVALID_ARGUMENT, [&] { mailbox.submit(sequences_of({4, 4})); }) == running(4));
  CHECK(arrived_ids(mailbox.look()) == Ids{1, 2});
  mailbox.submit(sequences_of({3, 4}));
  CHECK(arrived_ids(mailbox.look()) == Ids{1, 2, 3, 4});
}

TEST_CASE("mailbox: an id is free again when its last event is there, and a cancellation of it is forgotten") {
  Mailbox mailbox;
  mailbox.submit(sequences_of({1, 2}));
  mailbox.take(mailbox.look().arrived, milliseconds(0));
  const Ids both = {1, 2};
  deliver(mailbox, both, HEXAD_FINISH_NONE);
  CHECK(refusal(HEXAD_INVALID_ARGUMENT, [&] { mailbox.submit(sequences_of({1})); }) == running(1));
  mailbox.cancel(both);
  deliver(mailbox, {1}, HEXAD_FINISH_STOP);
  mailbox.submit(sequences_of({1}));
  CHECK(mailbox.look().cancelled == Ids{2});
}

TEST_CASE("mailbox: cancellations of running requests are told once, others not at all") {
  Mailbox mailbox;
  mailbox.submit(sequences_of({5, 6}));
  const Ids some = {6, 77};
  mailbox.cancel(some);
  CHECK(mailbox.look().cancelled == Ids{6});
  CHECK(mailbox.look().cancelled.empty());
}

TEST_CASE("mailbox: requests are taken in the order that is named, or none of them") {
  Mailbox mailbox;
  mailbox.submit(sequences_of({1, 2, 3, 4}));
  std::vector<Arrival> arrived = mailbox.look().arrived;
  std::swap(arrived[0], arrived[2]);
  arrived.pop_back();
  std::vector<Arrival> other = arrived;
  other[1].digest ^= 1;
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] {
          mailbox.take(other, milliseconds(0));
        }).starts_with("request 2 is not what rank 0 was given under this number (digest "));
  CHECK(arrived_ids(mailbox.look()) == Ids{1, 2, 3, 4});
  CHECK(taken_ids(mailbox.take(arrived, milliseconds(0))) == Ids{3, 2, 1});
  CHECK(arrived_ids(mailbox.look()) == Ids{4});
}

TEST_CASE("mailbox: a request that rank 0 names may come a little later, and else is missed by its number") {
  Mailbox mailbox;
  const std::vector<Arrival> arrived = {{9, digest_of(sequence_of(9)->request)}};
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { mailbox.take(arrived, milliseconds(20)); }) ==
        "request 9, which rank 0 runs, was not submitted here: submit the same requests to every rank");
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(30));
    mailbox.submit(sequences_of({8, 9}));
  });
  CHECK(taken_ids(mailbox.take(arrived, std::chrono::seconds(60))) == Ids{9});
  late.join();
}

TEST_CASE("mailbox: completions go out oldest first, as many as fit, and live until they are released") {
  Mailbox mailbox;
  deliver(mailbox, {1, 2, 3}, HEXAD_FINISH_STOP);
  std::vector<const hexad_completion*> events(2);
  REQUIRE(mailbox.hand_out(events) == 2);
  CHECK(ids_out(mailbox) == Ids{3});
  CHECK(ids_out(mailbox).empty());
  CHECK(events[0]->id == 1);
  CHECK(events[1]->id == 2);
  CHECK(events[1]->finish == HEXAD_FINISH_STOP);
  mailbox.release(events);
}

TEST_CASE("mailbox: a poller waits until something comes that was not looked at") {
  Mailbox mailbox;
  mailbox.submit(sequences_of({1}));
  CHECK(waited(mailbox) < milliseconds(1000));
  mailbox.look();
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    mailbox.wake();
  });
  const milliseconds until_woken = waited(mailbox);
  other.join();
  CHECK(until_woken >= milliseconds(20));
  CHECK(until_woken < milliseconds(1000));
  mailbox.look_away();
  const auto began = Clock::now();
  mailbox.wait_until(began + milliseconds(30));
  CHECK(Clock::now() - began >= milliseconds(30));
}
