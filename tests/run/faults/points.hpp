// Where a run's servers may fail and how, and a schedule of such faults.
#pragma once
#include <string>
#include <vector>

#include "tests/run/faults/faulty_run.hpp"
#include "tests/support/report.hpp"

namespace faults {

struct Point {
  const char* phase;
  const char* point;
  std::vector<const char*> kinds;
  int each;  // occasions from one fault to the next
};

// So many, point by point, by the name "phase-point-kind-number", each point's from its occasion `first` on. They take
// half a second each on the average: a run has to last longer. `refit_quiet_ms`: after a fault of an update, until
// another fault may come. Three of them in a row end an update, and the run.
inline Json schedule_of(const std::vector<Point>& points, int64_t count, int first = 4, int refit_quiet_ms = 300) {
  const auto quiet_ms = [&](const Point& point, const std::string& kind) {
    const std::string phase = point.phase;
    if (phase == "start" || phase == "abort") return 0;  // an abort follows another fault at once
    if (phase == "refit" && kind != "stop" && kind != "hang") return refit_quiet_ms;
    return kind == "stop" || kind == "hang" ? 2000 : 300;
  };
  if (!FaultyRun::can_fill_disks()) test_report::skipped("no disk can be mounted: faults disk_full");
  Json faults = Json::array();
  for (int round = 0; static_cast<int64_t>(faults.size()) < count; ++round) {
    for (const Point& point : points) {
      if (static_cast<int64_t>(faults.size()) == count) break;
      const std::string kind = point.kinds[static_cast<size_t>(round) % point.kinds.size()];
      if (kind == "disk_full" && !FaultyRun::can_fill_disks()) continue;
      faults.push_back({{"name", fmt::format("{}-{}-{}-{}", point.phase, point.point, kind, round + 1)},
                        {"point", point.point},
                        {"kind", kind},
                        {"occasion", first + round * point.each},
                        {"quiet_ms", quiet_ms(point, kind)}});
    }
  }
  return faults;
}

inline void check(const FaultyRun& run) {
  run.check_samples();
  run.check_times();
  run.check_faults();
  run.check_nothing_left();
}

}  // namespace faults
