// Idle slots of the pipeline schedules that training runs, counted on a virtual clock, beside the bubble formula
// (PP - 1) / (V M) of the time that computes.
//
//   pipeline_bubbles [--json]
//
// Built by `ninja pipeline_bubbles`. A forward through a chunk takes one slot, a backward two. Exits with 1 when a
// rank's idle slots are not the formula's.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "modeling/layout/schedule_clock.hpp"

namespace {

using namespace hexad::modeling::layout;

struct Row {
  PipelineOptions options;
  double idle = 0, busy = 0;  // slots of every rank
  bool equal = true;          // each rank's are the formula's

  double wanted() const { return bubble_fraction(options) * busy; }
};

Row measure(const PipelineOptions& options) {
  std::vector<PipelineSchedule> schedules;
  for (int64_t rank = 0; rank < options.ranks; ++rank) schedules.push_back(pipeline_schedule(options, rank));
  const PipelineTime time =
      run_on_clock(schedules, {.forward = 1, .backward = 2, .overlap = options.overlap, .channel_capacity = 1});
  Row row{options, time.idle(0), time.ranks[0].busy};
  for (int64_t rank = 0; rank < options.ranks; ++rank)
    row.equal &= std::abs(time.idle(rank) - bubble_fraction(options) * time.ranks[rank].busy) < 1e-9;
  return row;
}

std::vector<PipelineOptions> grid() {
  std::vector<PipelineOptions> all;
  for (const int64_t ranks : {2, 4, 8, 16}) {
    for (const int64_t rounds : {1, 2, 4, 8}) {
      PipelineOptions options;
      options.ranks = ranks, options.microbatches = ranks * rounds;
      all.push_back(options);
      for (const int64_t chunks : {2, 4}) {
        for (const bool overlap : {false, true}) {
          options.chunks = chunks, options.overlap = overlap;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

void print(const Row& row, bool json) {
  const PipelineOptions& o = row.options;
  const char* const format = json ? "{\"pipeline\": %lld, \"virtual\": %lld, \"microbatches\": %lld, \"overlap\": %s, "
                                    "\"busy_slots\": %g, \"idle_slots\": %g, \"formula\": %g}\n"
                                  : "PP %2lld  V %lld  M %3lld  overlap %-5s  busy %5g  idle %4g  formula %4g\n";
  std::printf(format, static_cast<long long>(o.ranks), static_cast<long long>(o.chunks.value_or(1)),
              static_cast<long long>(o.microbatches), o.overlap ? "true" : "false", row.busy, row.idle, row.wanted());
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && !std::strcmp(argv[1], "--json");
  bool equal = true;
  for (const PipelineOptions& options : grid()) {
    const Row row = measure(options);
    print(row, json);
    if (!row.equal) std::fprintf(stderr, "the line above is not the formula's\n");
    equal &= row.equal;
  }
  return equal ? 0 : 1;
}
