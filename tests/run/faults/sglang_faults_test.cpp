// Whatever becomes of SGLang servers in an asynchronous run, it ends with exactly the samples that it should have. What
// no server could say and every one does ends the run, and trains nothing.
#include "tests/run/faults/points.hpp"

using namespace faults;

namespace {

// Each phase meets each kind that it can.
const std::vector<Point> kPoints = {
    {"start", "launch", {"kill", "stop", "hang"}, 3},
    {"start", "health", {"stop", "status", "truncated", "reset", "kill", "unavailable"}, 5},
    {"start", "model_info", {"stranger", "page", "truncated", "kill", "status_text", "unavailable"}, 3},
    {"start", "server_info", {"status", "page", "truncated", "kill", "status_object", "reset"}, 3},
    {"start", "name", {"status", "truncated", "kill", "unavailable", "late_kill", "reset"}, 1},
    {"prefill", "prefill", {"stop", "hang", "status", "status_text", "status_object", "unavailable", "kill"}, 30},
    {"request", "prefill", {"truncated", "reset", "kill"}, 40},
    {"stream", "decode", {"truncated", "kill", "wrong_json", "stop", "hang", "status", "reset"}, 30},
    {"tokens", "decode", {"wrong_count", "other_id", "nan", "positive", "outside", "too_many"}, 30},
    {"facts", "decode", {"short_spans", "wrong_version", "wrong_name", "of_several", "bare", "changed"}, 30},
    {"end", "decode", {"let_go", "no_done", "fewer", "endless", "early_end", "twice"}, 30},
    {"pause", "pause", {"kill", "late_kill", "stop", "hang", "status", "truncated", "reset"}, 4},
    {"refit", "reload", {"hang", "late_kill", "stop", "status_object", "truncated", "reset", "kill"}, 4},
    {"refit", "flush", {"status", "truncated", "kill", "unavailable", "late_kill", "reset"}, 5},
    {"resume", "resume", {"status", "kill", "late_kill", "stop", "hang", "truncated", "reset"}, 4},
    {"abort", "abort", {"status", "truncated", "reset", "unavailable", "status_text"}, 2},
    {"save", "save", {"disk_full", "kill", "stop", "hang", "status", "truncated", "reset"}, 4},
    {"save", "checkpoint", {"kill", "disk_full", "stop", "hang", "status", "truncated", "reset"}, 2},
};

Json schedule(int64_t count, int first = 4) { return schedule_of(kPoints, count, first, /*refit_quiet_ms=*/2500); }

RunSize size(int steps) { return {.engine = "sglang", .steps = steps}; }

struct Refused {
  const char* always;  // a point and a kind, of every server at every occasion
  const char* words;
  bool attached = false;  // a server of the run's own that does not get ready is started again, and says less then
};

// What is said where every server does it.
const Refused kRefused[] = {
    {"decode nan", "a log-prob is not a number"},
    {"decode positive", "a log-prob is not a finite number of at most 0"},
    {"decode other_id", "log-prob 0 is not of token 3"},
    {"decode wrong_count", "an event of the stream has 1 tokens and 0 log-probs"},
    {"decode outside", "is it the server of another model?"},
    {"decode too_many", "41 more tokens, 40 were left of the 40 asked for"},
    {"decode short_spans", "weight_versions has spans for 0 of 1 tokens"},
    {"decode wrong_version", "its weights are called '1000000', and the newest that this run has given it are"},
    {"decode wrong_name", "its weights are called 'somebody else's', and this run has given them a number"},
    {"decode of_several", "an event of the stream is of several samples, one was asked for"},
    {"decode bare", "an event of the stream has no meta_info"},
    {"decode wrong_json", "an event of the stream is not a JSON object"},
    {"prefill refused", "refused it with status 400: fault always prefill refused"},
    {"prefill refused_text", "refused it with status 400: fault always prefill refused_text"},
    {"prefill refused_object", "refused it with status 400: fault always prefill refused_object"},
    {"model_info stranger", "it serves another model: its model_type is another", true},
    {"model_info page", "it is no SGLang server: /model_info: status 200: <html>", true},
    {"launch kill", "no SGLang server"},
};

}  // namespace

TEST_CASE("an SGLang server that is killed in the middle of its samples costs none") {
  check(FaultyRun(size(6), {{{"name", "decode-kill"}, {"point", "decode"}, {"kind", "kill"}, {"occasion", 40}}}));
}

TEST_SUITE("faults") {
  TEST_CASE("100 faults of SGLang servers") {
    RunSize run = size(800);
    run.timeout_s = 1500;
    check(FaultyRun(run, schedule(100)));
  }

  TEST_CASE("a run outlives the loss of all SGLang servers but one") {
    RunSize run = size(15);
    run.servers = 4, run.attached = true;
    check(FaultyRun(
        run, {{{"name", "decode-kill"}, {"point", "decode"}, {"kind", "kill"}, {"occasion", 30}, {"quiet_ms", 1}},
              {{"name", "reload-kill"}, {"point", "reload"}, {"kind", "kill"}, {"occasion", 12}},
              {{"name", "resume-kill"}, {"point", "resume"}, {"kind", "kill"}, {"occasion", 14}}}));
  }

  TEST_CASE("one SGLang server alone comes back from each fault") {
    RunSize run = size(60);
    run.servers = 1, run.timeout_s = 600;
    check(FaultyRun(run, schedule(12, /*first=*/2)));
  }

  TEST_CASE("what every SGLang server gets wrong ends the run, and nothing is trained on it") {
    for (const Refused& each : kRefused) {
      CAPTURE(each.always);
      RunSize run = size(3);
      run.always = each.always, run.attached = each.attached;
      const FaultyRun ended(run, Json::array());
      ended.check_refused(each.words);
    }
  }
}
