// A run that was resumed has several folders, one a start: they are one run.
#pragma once
#include <filesystem>
#include <vector>

#include "app/report/run_record.hpp"

namespace hexad::report {

// `directory`, or of a logger.log_dir the newest exp_NNN in it that has metrics.
std::filesystem::path newest_run(const std::filesystem::path& directory);

// The run of newest_run(run_dir), from its very beginning: where it went on from a checkpoint, the steps up to there
// come from the newest earlier folder beside it (exp_NNN of the same logger.log_dir) that has that step and the same
// checkpointing.checkpoint_dir, and so on. What an earlier start trained after that checkpoint is not of the run.
// Settings are the newest folder's. Throws Error(data) as read_run does for the folder itself.
RunRecord read_resumed(const std::filesystem::path& run_dir);

// These runs, without those that another of them goes on: named with it, they are one.
std::vector<RunRecord> without_continued(std::vector<RunRecord> runs);

}  // namespace hexad::report
