// The samples of a step, in whatever file the run has put them: the one place of this folder that knows.
#pragma once
#include <cstdint>

#include <nlohmann/json.hpp>

#include "app/report/run_record.hpp"

namespace hexad::report {

// The rollouts of a step, as they were logged.
struct StepSamples {
  int64_t step = 0;
  std::filesystem::path file;
};

// Of every step whose samples were logged, in the run's order.
std::vector<StepSamples> logged_samples(const RunRecord& run);

// What reading them costs, in bytes.
size_t bytes_of(const StepSamples& samples);

// A list of objects of NeMo-RL's names (content, rewards, token_ids ...), until `most_bytes` are read. Throws
// Error(data) if the file cannot be read.
nlohmann::ordered_json read_samples(const StepSamples& samples, size_t most_bytes);

}  // namespace hexad::report
