// Groups that are drawn between commands and during them.
#include "core/rollout/group_stream.hpp"

#include "tests/support/toy/workers.hpp"

using namespace hexad;
using namespace hexad::rollout;

namespace {

Sampling sampling() {
  Sampling sampling;
  sampling.max_new_tokens = 6;
  sampling.max_total_tokens = 16;
  sampling.stop_token_ids = {2};
  return sampling;
}

const std::vector<int32_t> kPrompt = {1, 3};

std::vector<Request> requests(size_t count) {
  std::vector<Request> all;
  for (size_t i = 0; i < count; ++i) all.push_back({kPrompt, 0, i + 1});
  return all;
}

}  // namespace

TEST_CASE("what a generator reports about groups arrives with them, once") {
  toy::InProcess workers(toy::slow_start_command(/*poll_ms=*/20));
  Generation generation(workers.group);
  GroupStream stream(workers.group, cluster::colocated(1));
  stream.submit({{7, requests(3)}}, sampling());
  stream.submit({{8, requests(2)}}, sampling());
  // This command polls for the groups too.
  CHECK(generation.generate(requests(4), sampling()).size() == 4);
  REQUIRE(workers.group.wait_until([&] { return stream.running() == 0; }, 20));
  CHECK(stream.take_finished().size() == 2);
  CHECK(generation.metrics().values().at("toy_requests") == 4);
  CHECK(stream.take_metrics().at("toy_requests") == 5);
  CHECK(stream.take_metrics().empty());
}
