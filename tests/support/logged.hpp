// Samples in the log of a run, for tests of what is made of them.
#pragma once
#include <vector>

#include "core/telemetry/run_log.hpp"
#include "lib/base/json.hpp"

namespace test_support {

// train_data_step<N>.jsonl of these objects, which waits to be written (RunLog::end_samples).
inline void log_samples(hexad::telemetry::RunLog& log, int64_t step, const std::vector<nlohmann::ordered_json>& lines) {
  size_t bytes = 0;
  for (const nlohmann::ordered_json& line : lines) bytes += hexad::json_text(line).size();
  log.samples("train_data", step,
              {.name = {},
               .count = static_cast<int64_t>(lines.size()),
               .line = [lines](int64_t i) { return hexad::json_text(lines[static_cast<size_t>(i)]); },
               .bytes = bytes},
              {});
}

// The same, when it is written.
inline void write_samples(hexad::telemetry::RunLog& log, int64_t step,
                          const std::vector<nlohmann::ordered_json>& lines) {
  log_samples(log, step, lines);
  log.end_samples();
}

}  // namespace test_support
