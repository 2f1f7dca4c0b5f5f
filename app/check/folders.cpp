// Folders that a run makes: whether it could. Nothing is made for it, and nothing locked.
#include <filesystem>

#include "app/check/findings.hpp"
#include "core/checkpoint/directory_lock.hpp"
#include "core/telemetry/run_log.hpp"
#include "lib/base/file/folder.hpp"

namespace hexad::cli {
namespace {

namespace fs = std::filesystem;

// The text of whoever makes them, and what begins it is the key.
template <typename Ask>
void ask(StartFindings& found, const std::string& key, const Ask& whether) {
  try {
    whether();
  } catch (const Error& refused) {
    const std::string what = refused.what();
    found.error(key, what.starts_with(key + ": ") ? what.substr(key.size() + 2) : what);
  }
}

// As checkpoint::Store makes it.
void require_checkpoints(const fs::path& root, const std::string& key) {
  std::error_code unreadable;
  if (const std::error_code error = why_not_made(root))
    fail(ErrorKind::data, "{}: cannot make {}: {}", key, root.string(), error.message());
  if (fs::is_directory(root, unreadable)) checkpoint::DirectoryLock::require_free(root, key);
}

}  // namespace

void check_folders(StartFindings& found) {
  const config::RunConfig& run = found.run;
  ask(found, "logger.log_dir", [&] { telemetry::require_run_directory(run.logger.log_dir); });
  if (!run.checkpointing.enabled) return;
  const std::string key = "checkpointing.checkpoint_dir";
  ask(found, key, [&] { require_checkpoints(run.checkpointing.checkpoint_dir, key); });
}

}  // namespace hexad::cli
