#include "app/report/sample_files.hpp"

#include <fmt/format.h>

#include "lib/zst/lines_file.hpp"

namespace hexad::report {

namespace fs = std::filesystem;

std::vector<StepSamples> logged_samples(const RunRecord& run) {
  std::vector<StepSamples> found;
  size_t folder = 0;
  for (size_t row = 0; row < run.steps.size(); ++row) {
    while (folder + 1 < run.folders.size() && run.folders[folder + 1].first_row <= row) ++folder;
    const int64_t step = run.steps[row];
    auto file = zst::find_lines(run.folders[folder].directory / fmt::format("train_data_step{}.jsonl", step));
    if (file) found.push_back({step, *std::move(file)});
  }
  return found;
}

size_t bytes_of(const StepSamples& samples) { return zst::text_bytes(samples.file); }

nlohmann::ordered_json read_samples(const StepSamples& samples, size_t most_bytes) {
  return read_json_lines(samples.file, most_bytes);
}

}  // namespace hexad::report
