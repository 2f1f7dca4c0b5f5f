// report.html: one self-contained page of a run, or of several over each other, readable without a network.
#pragma once
#include <filesystem>
#include <vector>

#include "app/report/run_record.hpp"

namespace hexad::report {

// Writes <run_dir>/report.html (atomically): curves, where the time goes, response lengths, sampled transcripts, the
// config. Throws Error(data) if there are no metrics.
void write_report(const std::filesystem::path& run_dir);

// The page of these runs, at `file`. Throws Error(data) with the reason if it cannot be written; an older page stays.
void write_page(const std::vector<RunRecord>& runs, const std::filesystem::path& file);

}  // namespace hexad::report
