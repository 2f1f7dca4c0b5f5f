#include "modeling/layout/pipeline_schedule.hpp"

#include <algorithm>

#include "modeling/error.hpp"
#include "modeling/layout/schedule_builder.hpp"

namespace hexad::modeling::layout {
namespace {

constexpr int64_t kMostUnits = int64_t{1} << 22;

void check_sizes(const PipelineOptions& options, int64_t rank) {
  const int64_t chunks = options.chunks.value_or(1);
  if (options.ranks < 1 || chunks < 1 || options.microbatches < 1) {
    fail("pipeline schedule: ranks {}, chunks {} and microbatches {} must all be at least 1", options.ranks, chunks,
         options.microbatches);
  }
  if (options.microbatches > kMostUnits / chunks) {
    fail("pipeline schedule: {} microbatches in {} chunks are more than {} units", options.microbatches, chunks,
         kMostUnits);
  }
  if (rank < 0 || rank >= options.ranks) {
    fail("pipeline schedule: rank {} is outside the pipeline of {} ranks", rank, options.ranks);
  }
  if (options.partial_checkpoints && *options.partial_checkpoints < 0) {
    fail("pipeline schedule: partial checkpoints for {} microbatches; want 0 or more", *options.partial_checkpoints);
  }
}

void check_interleaving(const PipelineOptions& options) {
  const int64_t ranks = options.ranks, microbatches = options.microbatches;
  const int64_t group = options.group.value_or(ranks);
  if (ranks == 1) {
    fail("pipeline schedule: {} virtual stages want at least 2 pipeline ranks, got 1; leave the virtual stages out",
         *options.chunks);
  }
  if (group < ranks || group > microbatches) {
    fail(
        "pipeline schedule: the microbatch group of a virtual stage is {} and must be in [pipeline ranks {}, "
        "microbatches {}]; {}",
        group, ranks, microbatches,
        microbatches < ranks ? fmt::format("use at least {} microbatches", ranks)
                             : fmt::format("the nearest is {}", std::clamp(group, ranks, microbatches)));
  }
  const int64_t last = microbatches % group;
  if (last > 0 && last < ranks) {
    fail(
        "pipeline schedule: {} microbatches in groups of {} leave a last group of {}, fewer than the {} pipeline "
        "ranks, which would starve; use {} or {} microbatches",
        microbatches, group, last, ranks, microbatches - last, microbatches - last + ranks);
  }
}

void check(const PipelineOptions& options, int64_t rank) {
  check_sizes(options, rank);
  if (options.prefetch && !options.overlap) {
    fail(
        "pipeline schedule: prefetching in warm-up and flush wants overlapped point-to-point communication; turn "
        "overlap_p2p_comm on or overlap_p2p_comm_warmup_flush off");
  }
  if (options.chunks) {
    check_interleaving(options);
    return;
  }
  if (options.overlap && options.ranks > 1) {
    fail(
        "pipeline schedule: overlapped point-to-point communication wants an interleaved pipeline; set virtual "
        "stages or turn overlap_p2p_comm off");
  }
  if (options.extra_warmup) {
    fail(
        "pipeline schedule: overlapping expert communication wants an interleaved pipeline; set virtual stages or "
        "turn overlap_moe_expert_parallel_comm off");
  }
}

PipelineSchedule no_pipeline(const PipelineOptions& options) {
  ScheduleBuilder schedule;
  schedule.hold_gradients();
  for (int32_t i = 0; i < options.microbatches; ++i) {
    if (i == options.microbatches - 1) schedule.release_gradients();
    schedule.forward({0, i}, i, {});
    if (!options.forward_only) schedule.backward({0, i}, i);
  }
  if (!options.forward_only) schedule.finalize();
  return schedule.take();
}

}  // namespace

WarmupCounts warmup_counts(const PipelineOptions& options, int64_t rank) {
  check(options, rank);
  const int64_t after = options.ranks - rank - 1;
  WarmupCounts counts;
  counts.total = options.microbatches * options.chunks.value_or(1);
  if (options.forward_only) {
    counts.warmup = counts.total;
  } else if (options.chunks) {
    counts.warmup = 2 * after + (*options.chunks - 1) * options.group.value_or(options.ranks) + options.extra_warmup;
  } else {
    counts.warmup = after;
  }
  counts.all_in_warmup = counts.warmup >= counts.total;
  counts.warmup = std::min(counts.warmup, counts.total);
  counts.remaining = counts.total - counts.warmup;
  return counts;
}

std::vector<PipelineUnit> schedule_table(const PipelineOptions& options) {
  check(options, 0);
  std::vector<PipelineUnit> table;
  const int64_t group = options.group.value_or(options.ranks);
  for (int64_t first = 0; first < options.microbatches; first += group) {
    const int64_t end = std::min(first + group, options.microbatches);
    for (int64_t chunk = 0; chunk < options.chunks.value_or(1); ++chunk) {
      for (int64_t i = first; i < end; ++i) table.push_back({static_cast<int32_t>(chunk), static_cast<int32_t>(i)});
    }
  }
  return table;
}

PipelineSchedule pipeline_schedule(const PipelineOptions& options, int64_t rank) {
  check(options, rank);
  if (options.ranks == 1) return no_pipeline(options);
  return options.chunks ? interleaved(options, rank) : one_f_one_b(options, rank);
}

}  // namespace hexad::modeling::layout
