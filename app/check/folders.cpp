// Folders that a run makes: made, and taken back.
#include <filesystem>

#include "app/check/findings.hpp"
#include "core/algorithm/run/interruption.hpp"
#include "core/checkpoint/directory_lock.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::cli {
namespace {

namespace fs = std::filesystem;

// The text of whoever makes them, and what begins it is the key.
void tell(StartFindings& found, const std::string& key, const std::string& what) {
  found.error(key, what.starts_with(key + ": ") ? what.substr(key.size() + 2) : what);
}

void try_logs(StartFindings& found) {
  algorithm::Interruption made;
  made.begin();
  const fs::path log_dir = found.run.logger.log_dir;
  made.will_make(log_dir);
  try {
    made.has_made(telemetry::make_run_directory(log_dir));
  } catch (const Error& error) {
    tell(found, "logger.log_dir", error.what());
  }
  made.take_back();
}

void try_checkpoints(StartFindings& found) {
  const std::string key = "checkpointing.checkpoint_dir";
  const fs::path root = found.run.checkpointing.checkpoint_dir;
  algorithm::Interruption made;
  made.begin();
  made.will_make(root / ".lock");
  std::error_code error;
  fs::create_directories(root, error);
  try {
    if (error) fail(ErrorKind::data, "{}: cannot make {}: {}", key, root.string(), error.message());
    const checkpoint::DirectoryLock nobody_else(root, key);
  } catch (const Error& refused) {
    tell(found, key, refused.what());
  }
  made.take_back();
}

}  // namespace

void check_folders(StartFindings& found) {
  try_logs(found);
  if (found.run.checkpointing.enabled) try_checkpoints(found);
}

}  // namespace hexad::cli
