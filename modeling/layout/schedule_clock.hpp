// A pipeline's schedules replayed on a virtual clock: do they fit together, and how long is every rank idle?
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "modeling/layout/pipeline_schedule.hpp"

namespace hexad::modeling::layout {

struct ClockOptions {
  double forward = 1, backward = 2;  // time of one unit
  double transfer = 0;               // from the later of send and receive to the arrival
  bool overlap = false;              // PipelineOptions::overlap: an exchange waits for its sends alone
  // Messages that one direction between two ranks holds before a send waits for a receive; 0: a send waits for its
  // receive. Absent: a send never waits.
  std::optional<int64_t> channel_capacity = {};
};

struct RankTime {
  double busy = 0, end = 0;
};

struct PipelineTime {
  double makespan = 0;
  std::vector<RankTime> ranks;
  // Time of `rank` without work, in the makespan.
  double idle(int64_t rank) const { return makespan - ranks[rank].busy; }
};

// `schedules`: one a pipeline rank. Throws Error when they do not fit: a deadlock (with the event each rank is at), a
// receive whose label is not that of the message that arrives, a unit that runs without its input.
PipelineTime run_on_clock(const std::vector<PipelineSchedule>& schedules, const ClockOptions& options);

// Idle over busy time of every rank of an ideal schedule: (ranks - 1) / (chunks microbatches) (Narayanan et al. 2021,
// section 2.2). Training schedules reach it where transfers take no time, whatever the group.
double bubble_fraction(const PipelineOptions& options);

}  // namespace hexad::modeling::layout
