#include "modeling/layout/schedule_clock.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "modeling/error.hpp"

using namespace hexad::modeling::layout;
using hexad::modeling::Error;
using Kind = PipelineEvent::Kind;

namespace {

std::vector<PipelineSchedule> all_ranks(const PipelineOptions& options) {
  std::vector<PipelineSchedule> schedules;
  for (int64_t rank = 0; rank < options.ranks; ++rank) schedules.push_back(pipeline_schedule(options, rank));
  return schedules;
}

PipelineOptions random_options(std::mt19937& random) {
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  PipelineOptions options;
  options.ranks = between(1, 6);
  options.forward_only = between(0, 3) == 0;
  options.sync_by_chunk = between(0, 1);
  if (between(0, 1)) options.partial_checkpoints = between(0, 3);
  if (options.ranks == 1 || between(0, 2) == 0) {
    options.microbatches = between(1, 15);
    return options;
  }
  options.chunks = between(1, 4);
  options.group = options.ranks + between(0, 3);
  const int64_t last = between(0, 1) ? 0 : between(options.ranks, *options.group);
  options.microbatches = *options.group * between(1, 3) + last;
  options.extra_warmup = between(0, 3) == 0;
  options.overlap = between(0, 1);
  options.prefetch = options.overlap && between(0, 1);
  return options;
}

void describe(const PipelineOptions& options) {
  MESSAGE("ranks " << options.ranks << " chunks " << options.chunks.value_or(-1) << " microbatches "
                   << options.microbatches << " group " << options.group.value_or(-1) << " overlap " << options.overlap
                   << options.prefetch << " forward only " << options.forward_only << " extra "
                   << options.extra_warmup);
}

// Each unit runs forward once and, in training, backward once after it.
bool runs_every_unit_once(const PipelineOptions& options, const PipelineSchedule& schedule) {
  std::map<std::pair<int32_t, int32_t>, int> state;
  for (const PipelineEvent& event : schedule) {
    const std::pair unit{event.unit.chunk, event.unit.microbatch};
    if (event.kind == Kind::forward && ++state[unit] != 1) return false;
    if (event.kind == Kind::backward && ++state[unit] != 2) return false;
  }
  for (const auto& [unit, times] : state) {
    if (times != (options.forward_only ? 1 : 2)) return false;
  }
  return static_cast<int64_t>(state.size()) == options.chunks.value_or(1) * options.microbatches;
}

}  // namespace

TEST_CASE("schedules never deadlock, and messages are what their receivers expect") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 400; ++trial) {
    const PipelineOptions options = random_options(random);
    const auto schedules = all_ranks(options);
    for (const PipelineSchedule& schedule : schedules) {
      if (!runs_every_unit_once(options, schedule)) describe(options);
      REQUIRE(runs_every_unit_once(options, schedule));
    }
    for (const std::optional<int64_t> capacity : {std::optional<int64_t>(0), std::optional<int64_t>(1), {}}) {
      try {
        run_on_clock(schedules, {.overlap = options.overlap, .channel_capacity = capacity});
      } catch (const Error& error) {
        describe(options);
        FAIL_CHECK("capacity " << capacity.value_or(-1) << ": " << error.what());
      }
    }
  }
}

TEST_CASE("gradients of a chunk are reduced once, after its last backward, and released for it") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    PipelineOptions options = random_options(random);
    options.forward_only = false;
    for (const PipelineSchedule& schedule : all_ranks(options)) {
      std::map<int32_t, int64_t> left, reduced;
      for (int32_t chunk = 0; chunk < options.chunks.value_or(1); ++chunk) left[chunk] = options.microbatches;
      bool held = false;
      for (const PipelineEvent& event : schedule) {
        if (event.kind == Kind::hold_gradients) held = true;
        if (event.kind == Kind::release_gradients) held = false;
        if (event.kind == Kind::backward && --left[event.unit.chunk] == 0 && !options.sync_by_chunk) CHECK(!held);
        if (event.kind != Kind::reduce_gradients) continue;
        CHECK(left[event.unit.chunk] == 0);
        CHECK(++reduced[event.unit.chunk] == 1);
        CHECK(!held);
      }
      CHECK(!held);
      CHECK(schedule.back().kind == Kind::finalize);
    }
  }
}

TEST_CASE("idle slots of 1F1B are those of the bubble formula") {
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (const int64_t microbatches : {1, 3, 8, 17}) {
      const PipelineOptions options{.ranks = ranks, .microbatches = microbatches};
      for (const double backward : {1.0, 2.0, 3.0}) {
        const PipelineTime time = run_on_clock(all_ranks(options), {.forward = 1, .backward = backward});
        for (int64_t rank = 0; rank < ranks; ++rank) {
          CHECK(time.idle(rank) == (ranks - 1) * (1 + backward));
          CHECK(time.idle(rank) / time.ranks[rank].busy == doctest::Approx(bubble_fraction(options)));
        }
      }
    }
  }
}

TEST_CASE("interleaving divides the bubble by the number of chunks, whatever the group") {
  std::mt19937 random(12);
  for (int trial = 0; trial < 150; ++trial) {
    const auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
    PipelineOptions options{.ranks = 2 + below(5), .chunks = 1 + below(4)};
    options.group = options.ranks + below(4);
    options.microbatches = *options.group * (1 + below(3)) + below(2) * options.ranks;
    options.overlap = random() % 2;
    const PipelineTime time = run_on_clock(all_ranks(options), {.overlap = options.overlap});
    for (int64_t rank = 0; rank < options.ranks; ++rank) {
      CHECK(time.idle(rank) / time.ranks[rank].busy == doctest::Approx(bubble_fraction(options)));
    }
  }
}

TEST_CASE("schedules that do not fit are refused with the place") {
  const auto good = all_ranks({.ranks = 2, .microbatches = 3});
  auto lost = good;
  for (PipelineEvent& event : lost[0]) {
    if (event.send_next && event.send_next->microbatch == 2) event.send_next.reset();
  }
  CHECK_THROWS_WITH_AS(
      run_on_clock(lost, {}),
      "pipeline schedules deadlock: rank 0 waits in event 10, exchange, receiving gradients for (chunk 0, "
      "microbatch 2); rank 1 waits in event 7, exchange, sending gradients of (chunk 0, microbatch "
      "1), receiving activations for (chunk 0, microbatch 2)",
      Error);
  auto swapped = good;
  for (PipelineEvent& event : swapped[1]) {
    if (event.recv_prev && event.recv_prev->microbatch < 2)
      event.recv_prev->microbatch = 1 - event.recv_prev->microbatch;
  }
  CHECK_THROWS_WITH_AS(run_on_clock(swapped, {}),
                       "pipeline rank 1: receives (chunk 0, microbatch 1) but the message is (chunk 0, microbatch 0)",
                       Error);
  auto forgotten = good;
  for (PipelineEvent& event : forgotten[1]) event.recv_prev.reset();
  CHECK_THROWS_WITH_AS(run_on_clock(forgotten, {}),
                       "pipeline rank 1: forward of (chunk 0, microbatch 0) without its input", Error);
}
