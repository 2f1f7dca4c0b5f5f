// The samples of a step, in whatever file the run has put them: the one place of this folder that knows.
#pragma once
#include <cstdint>
#include <optional>

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

// Of the newest step of one folder. Its size grows while it is written; nothing where there are none.
std::optional<std::filesystem::path> newest_samples(const std::filesystem::path& directory);

// What reading them costs, in bytes.
size_t bytes_of(const StepSamples& samples);

// A list of objects of NeMo-RL's names (content, rewards, token_ids ...), until `most_bytes` are read; `is_cut` then,
// where there are more. Throws Error(data) if the file cannot be read.
nlohmann::ordered_json read_samples(const StepSamples& samples, size_t most_bytes, bool* is_cut = nullptr);

// A line of a step's log, and which.
struct SampleLine {
  size_t row = 0;
  nlohmann::ordered_json line;
};

// The lines that have the texts of their tokens, wherever in the log they stand, until `most_looked_at` bytes are read,
// `most_bytes` of them of such lines. Throws Error(data) if the file cannot be read.
std::vector<SampleLine> samples_with_texts(const StepSamples& samples, size_t most_bytes, size_t most_looked_at);

// Of all responses of the step, however many samples were logged: the first line says it. Empty where it does not (an
// older version wrote it). Reads no more than that line needs. Throws Error(data) if the file cannot be read.
std::vector<int64_t> all_response_lengths(const StepSamples& samples);

}  // namespace hexad::report
