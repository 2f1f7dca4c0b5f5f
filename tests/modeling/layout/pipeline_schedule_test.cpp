#include "modeling/layout/pipeline_schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "modeling/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad::modeling::layout;
using golden::Json;
using hexad::modeling::Error;
using Kind = PipelineEvent::Kind;

namespace {

std::optional<int64_t> number_or_null(const Json& config, const char* key) {
  if (!config.contains(key) || config.at(key).is_null()) return {};
  return config.at(key).get<int64_t>();
}

PipelineOptions options_of(const Json& config) {
  PipelineOptions options;
  options.ranks = config.at("pipeline_model_parallel_size");
  options.chunks = number_or_null(config, "virtual_pipeline_model_parallel_size");
  options.microbatches = config.at("num_microbatches");
  options.group = number_or_null(config, "microbatch_group_size_per_vp_stage");
  options.forward_only = config.value("forward_only", false);
  options.overlap = config.value("overlap_p2p_comm", false);
  options.prefetch = config.value("overlap_p2p_comm_warmup_flush", false);
  options.sync_by_chunk = config.value("grad_sync_func_and_param_sync_func", false);
  options.partial_checkpoints = number_or_null(config, "num_microbatches_with_partial_activation_checkpoints");
  return options;
}

Json label(const std::optional<PipelineUnit>& unit) { return unit ? Json({unit->chunk, unit->microbatch}) : Json(); }

// The trace of the real schedules, in the words of the golden file.
void append(Json& trace, const PipelineEvent& event) {
  const int32_t chunk = event.unit.chunk;
  switch (event.kind) {
    case Kind::forward:
      if (event.recompute) trace.push_back({"checkpoint", *event.recompute ? 1 : 0});
      trace.push_back({"F", event.position, chunk, event.unit.microbatch});
      return;
    case Kind::backward: trace.push_back({"B", event.position, chunk, event.unit.microbatch}); return;
    case Kind::exchange:
      trace.push_back(
          {"comm", label(event.send_next), label(event.send_prev), event.recv_prev ? 1 : 0, event.recv_next ? 1 : 0});
      return;
    case Kind::hold_gradients: trace.push_back({"no_sync", "enter"}); return;
    case Kind::release_gradients: trace.push_back({"no_sync", "exit"}); return;
    case Kind::gather_parameters: trace.push_back({"param_sync", chunk}); return;
    case Kind::reduce_gradients: trace.push_back({"grad_sync", chunk}); return;
    case Kind::finalize: trace.push_back(Json::array({"finalize"})); return;
  }
}

// Forwards as chunk + 1 and backwards as -(chunk + 1), in turn.
Json compute_order(const PipelineSchedule& schedule) {
  Json order = Json::array();
  for (const PipelineEvent& event : schedule) {
    if (event.kind == Kind::forward) order.push_back(event.unit.chunk + 1);
    if (event.kind == Kind::backward) order.push_back(-event.unit.chunk - 1);
  }
  return order;
}

void check_counts(const WarmupCounts& got, const Json& want) {
  CHECK(got.total == want.at("total_num_microbatches"));
  CHECK(got.warmup == want.at("num_warmup_microbatches"));
  CHECK(got.remaining == want.at("num_microbatches_remaining"));
  CHECK(got.all_in_warmup == want.at("are_all_microbatches_in_warmup"));
}

void check_schedule(const Json& test_case) {
  const Json& want = test_case.at("expected");
  PipelineOptions options = options_of(test_case.at("config"));
  if (want.contains("error")) {
    CHECK_THROWS_AS(pipeline_schedule(options, 0), Error);
    return;
  }
  if (want.contains("schedule_table")) {
    Json table = Json::array();
    for (const PipelineUnit& unit : schedule_table(options)) table.push_back({unit.microbatch, unit.chunk});
    CHECK(table == want.at("schedule_table"));
  }
  for (size_t i = 0; i < want.at("ranks").size(); ++i) {
    const Json& rank = want.at("ranks")[i];
    const int64_t pp_rank = rank.value("pp_rank", static_cast<int64_t>(i));
    INFO("pipeline rank " << pp_rank);
    options.extra_warmup = rank.value("overlap_moe_expert_parallel_comm", false);
    check_counts(warmup_counts(options, pp_rank), rank);
    const PipelineSchedule schedule = pipeline_schedule(options, pp_rank);
    if (rank.contains("events")) {
      Json trace = Json::array();
      for (const PipelineEvent& event : schedule) append(trace, event);
      CHECK(trace == rank.at("events"));
    }
    if (rank.contains("order") && !rank.at("order").is_null()) CHECK(compute_order(schedule) == rank.at("order"));
  }
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("pipeline_schedules") { golden::for_each_case("pipeline_schedules", check_schedule); }
}

TEST_CASE("receives name the unit they feed") {
  const PipelineSchedule schedule = pipeline_schedule({.ranks = 2, .chunks = 2, .microbatches = 2}, 0);
  std::vector<PipelineUnit> from_prev, from_next;
  for (const PipelineEvent& event : schedule) {
    if (event.recv_prev) from_prev.push_back(*event.recv_prev);
    if (event.recv_next) from_next.push_back(*event.recv_next);
  }
  CHECK((from_prev == std::vector<PipelineUnit>{{1, 0}, {1, 1}}));
  CHECK((from_next == std::vector<PipelineUnit>{{1, 0}, {1, 1}, {0, 0}, {0, 1}}));
}

TEST_CASE("events describe themselves") {
  const PipelineSchedule schedule =
      pipeline_schedule({.ranks = 2, .chunks = 2, .microbatches = 2, .sync_by_chunk = true}, 1);
  std::vector<std::string> texts;
  for (const PipelineEvent& event : schedule) texts.push_back(describe(event));
  const auto has = [&](const char* text) { return std::find(texts.begin(), texts.end(), text) != texts.end(); };
  CHECK(has("holding gradients"));
  CHECK(has("releasing gradients"));
  CHECK(has("gathering parameters of chunk 1"));
  CHECK(has("reducing gradients of chunk 0"));
  CHECK(has("finishing gradients"));
  CHECK(has("forward of (chunk 1, microbatch 0)"));
  CHECK(has("backward of (chunk 1, microbatch 0)"));
  CHECK(
      has("exchange, sending activations of (chunk 0, microbatch 1), receiving activations for (chunk 1, "
          "microbatch 0)"));
  CHECK(has("exchange, sending gradients of (chunk 1, microbatch 1), receiving gradients for (chunk 0, microbatch 0)"));
}

TEST_CASE("a refused schedule gets the rule, the numbers and what would fit") {
  const auto make = [](PipelineOptions options, int64_t rank = 0) { pipeline_schedule(options, rank); };
  CHECK_THROWS_WITH_AS(make({.ranks = 2, .chunks = 0, .microbatches = 3}),
                       "pipeline schedule: ranks 2, chunks 0 and microbatches 3 must all be at least 1", Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 2, .chunks = 1 << 20, .microbatches = 1 << 20}),
                       doctest::Contains("are more than 4194304 units"), Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 2}, 2), "pipeline schedule: rank 2 is outside the pipeline of 2 ranks", Error);
  CHECK_THROWS_WITH_AS(make({.partial_checkpoints = -1}), doctest::Contains("partial checkpoints for -1 microbatches"),
                       Error);
  CHECK_THROWS_WITH_AS(make({.chunks = 2, .microbatches = 4}),
                       doctest::Contains("2 virtual stages want at least 2 pipeline ranks, got 1"), Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 4, .chunks = 2, .microbatches = 8, .group = 2}),
                       doctest::Contains("is 2 and must be in [pipeline ranks 4, microbatches 8]; the nearest is 4"),
                       Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 4, .chunks = 2, .microbatches = 3}),
                       doctest::Contains("use at least 4 microbatches"), Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 4, .chunks = 2, .microbatches = 9}),
                       doctest::Contains("9 microbatches in groups of 4 leave a last group of 1, fewer than the 4 "
                                         "pipeline ranks, which would starve; use 8 or 12 microbatches"),
                       Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 2, .microbatches = 4, .overlap = true}),
                       doctest::Contains("wants an interleaved pipeline; set virtual stages or turn overlap_p2p_comm"),
                       Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 2, .microbatches = 4, .extra_warmup = true}),
                       doctest::Contains("turn overlap_moe_expert_parallel_comm off"), Error);
  CHECK_THROWS_WITH_AS(make({.ranks = 2, .chunks = 2, .microbatches = 4, .prefetch = true}),
                       doctest::Contains("turn overlap_p2p_comm on or overlap_p2p_comm_warmup_flush off"), Error);
}
