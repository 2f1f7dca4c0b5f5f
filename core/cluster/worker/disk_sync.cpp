#include "core/cluster/worker/disk_sync.hpp"

#include "lib/base/file.hpp"

namespace hexad::cluster {

void DiskSync::start(std::vector<std::filesystem::path> folders) {
  running_ = std::async(std::launch::async, [folders = std::move(folders)] {
    for (const std::filesystem::path& folder : folders) sync_tree(folder);
  });
}

bool DiskSync::done(std::chrono::milliseconds patience) {
  if (!running_.valid()) return true;
  if (running_.wait_for(patience) != std::future_status::ready) return false;
  running_.get();
  return true;
}

}  // namespace hexad::cluster
