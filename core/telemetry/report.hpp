// report.html: one self-contained page of a run, readable without a network.
#pragma once
#include <filesystem>

namespace hexad::telemetry {

// Reads <run_dir>/metrics.jsonl and config.yaml and writes <run_dir>/report.html (atomically): curves of reward,
// validation accuracy, length, KL and train/rollout mismatch, a breakdown of the step time, sampled transcripts, the
// config. Throws Error(data) if there are no metrics.
void write_report(const std::filesystem::path& run_dir);

}  // namespace hexad::telemetry
