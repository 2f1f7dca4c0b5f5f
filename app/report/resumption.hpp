// A run that was resumed has several folders, one a start: they are one run.
#pragma once
#include <filesystem>
#include <vector>

#include "app/report/run_record.hpp"

namespace hexad::report {

// `directory`, or of a logger.log_dir the newest exp_NNN in it that has metrics.
std::filesystem::path newest_run(const std::filesystem::path& directory);

// The run of newest_run(run_dir), from its very beginning: where it went on from a checkpoint, the steps up to there
// come from the newest earlier folder beside it (exp_NNN of the same logger.log_dir) that has the same
// checkpointing.checkpoint_dir and that step, or ends with the step before: a checkpoint is there before its step's
// line. And so on. What an earlier start trained after that checkpoint is not of the run. Settings are the newest
// folder's. Throws Error(data) as read_run does for the folder itself.
RunRecord read_resumed(const std::filesystem::path& run_dir);

// A run for each of these directories, in their order: as read_resumed, but that none begins before a folder which is
// named itself. A run and its resumption, both named, are two runs to be compared.
std::vector<RunRecord> read_named(const std::vector<std::filesystem::path>& directories);

}  // namespace hexad::report
