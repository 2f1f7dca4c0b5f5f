// Whatever becomes of vLLM servers in an asynchronous run, it ends with exactly the samples that it should have.
#include "tests/run/faults/points.hpp"

using namespace faults;

namespace {

// Each phase meets each kind that it can.
const std::vector<Point> kPoints = {
    {"start", "launch", {"kill", "stop", "hang"}, 3},
    {"start", "health", {"stop", "status", "truncated", "reset", "kill"}, 5},
    {"start", "version", {"truncated", "kill", "status"}, 3},
    {"start", "is_paused", {"status", "truncated", "reset", "kill"}, 3},
    {"prefill", "prefill", {"stop", "hang", "status", "truncated", "reset", "kill"}, 30},
    {"decode", "decode", {"truncated", "kill", "wrong_json", "stop", "hang", "status", "wrong_count", "reset"}, 30},
    {"pause", "pause", {"kill", "late_kill", "stop", "hang", "status", "truncated", "reset"}, 4},
    {"refit", "reload", {"hang", "late_kill", "stop", "status", "truncated", "reset", "kill"}, 4},
    {"refit", "reset", {"status", "truncated", "kill"}, 6},
    {"resume", "resume", {"status", "kill", "late_kill", "stop", "hang", "truncated", "reset"}, 4},
    {"save", "save", {"disk_full", "kill", "stop", "hang", "status", "truncated", "reset"}, 4},
    {"save", "checkpoint", {"kill", "disk_full", "stop", "hang", "status", "truncated", "reset"}, 2},
};

Json schedule(int64_t count) { return schedule_of(kPoints, count); }

}  // namespace

TEST_CASE("a server that is killed in the middle of its samples costs none") {
  check(FaultyRun({.steps = 6}, {{{"name", "decode-kill"}, {"point", "decode"}, {"kind", "kill"}, {"occasion", 40}}}));
}

TEST_CASE("a run outlives the loss of all servers but one") {
  const Json schedule = {
      {{"name", "decode-kill"}, {"point", "decode"}, {"kind", "kill"}, {"occasion", 30}, {"quiet_ms", 1}},
      {{"name", "reload-kill"}, {"point", "reload"}, {"kind", "kill"}, {"occasion", 12}},
      {{"name", "resume-kill"}, {"point", "resume"}, {"kind", "kill"}, {"occasion", 14}}};
  const FaultyRun run({.steps = 15, .servers = 4, .attached = true}, schedule);
  check(run);
  size_t back = 0;
  const std::string log = run.worker_log();
  for (size_t at = 0; (at = log.find(") takes requests", at)) != std::string::npos; ++at) ++back;
  CHECK_MESSAGE(back == 4, log);  // each at the beginning, and no more
}

// A server that fills a disk and is killed for being slow gives the disk back before the run has met it.
TEST_CASE("faults of every phase and kind, a few" * doctest::test_suite("timing")) {
  check(FaultyRun({.steps = 150}, schedule(24)));
}

TEST_SUITE("faults") {
  TEST_CASE("100 faults") { check(FaultyRun({.steps = 480, .timeout_s = 1500}, schedule(100))); }
}
