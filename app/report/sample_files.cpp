#include "app/report/sample_files.hpp"

#include <charconv>

#include <fmt/format.h>

#include "lib/base/json.hpp"
#include "lib/zst/lines_file.hpp"

namespace hexad::report {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kBeforeStep = "train_data_step";

// Of its file, in either form; nothing of another file.
std::optional<int64_t> step_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kBeforeStep)) return std::nullopt;
  int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [after, error] = std::from_chars(name.data() + kBeforeStep.size(), end, step);
  const std::string_view rest(after, static_cast<size_t>(end - after));
  return error == std::errc() && (rest == ".jsonl" || rest == ".jsonl.zst") ? std::optional(step) : std::nullopt;
}

}  // namespace

std::vector<StepSamples> logged_samples(const RunRecord& run) {
  std::vector<StepSamples> found;
  size_t folder = 0;
  for (size_t row = 0; row < run.steps.size(); ++row) {
    while (folder + 1 < run.folders.size() && run.folders[folder + 1].first_row <= row) ++folder;
    const int64_t step = run.steps[row];
    auto file = zst::find_lines(run.folders[folder].directory / fmt::format("{}{}.jsonl", kBeforeStep, step));
    if (file) found.push_back({step, *std::move(file)});
  }
  return found;
}

std::optional<fs::path> newest_samples(const fs::path& directory) {
  std::optional<fs::path> newest;
  int64_t most = -1;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const int64_t step = step_of(entry->path()).value_or(-1);
    if (step > most) most = step, newest = entry->path();
  }
  return newest;
}

size_t bytes_of(const StepSamples& samples) { return zst::text_bytes(samples.file); }

Json read_samples(const StepSamples& samples, size_t most_bytes, bool* is_cut) {
  return read_json_lines(samples.file, most_bytes, is_cut);
}

std::vector<SampleLine> samples_with_texts(const StepSamples& samples, size_t most_bytes, size_t most_looked_at) {
  std::vector<SampleLine> found;
  size_t row = 0, bytes = 0, looked_at = 0;
  zst::read_lines(samples.file, [&](std::string_view text) {
    looked_at += text.size();
    // Within a string its quotes would be escaped: only lines that have the key, of whatever depth, are parsed.
    if (text.find("\"tokens\":") != std::string_view::npos) {
      bytes += text.size();
      if (Json line = try_parse_json<Json>(text); line.is_object() && line.contains("tokens"))
        found.push_back({row, std::move(line)});
    }
    ++row;
    return bytes < most_bytes && looked_at < most_looked_at;
  });
  return found;
}

std::vector<int64_t> all_response_lengths(const StepSamples& samples) {
  const Json first = read_samples(samples, 1);
  std::vector<int64_t> lengths;
  for (const Json& each : first.empty() ? Json() : first[0].value("step_response_lengths", Json())) {
    if (each.is_number_integer()) lengths.push_back(each.get<int64_t>());
  }
  return lengths;
}

}  // namespace hexad::report
