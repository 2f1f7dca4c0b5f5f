// report.html: one self-contained page of a run, or of several over each other, readable without a network.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hexad::report {

// Writes <run_dir>/report.html (atomically): curves, where the time goes, response lengths, sampled transcripts, the
// config, what its metrics say. A run that was resumed is whole. Throws Error(data) if there are no metrics.
void write_report(const std::filesystem::path& run_dir);

// The page of these runs, at `file`. Throws Error(data) with the reason if it cannot be written; an older page stays.
void write_page(const std::vector<RunRecord>& runs, const std::filesystem::path& file);

// The same page as it is served: it asks where it came from for metrics.json and samples.json, and for nothing else.
std::string live_page(const std::vector<RunRecord>& runs);

}  // namespace hexad::report
