#include "tests/run/faults/disk.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace faults {
namespace {

namespace fs = std::filesystem;
}  // namespace

fs::path folder_of(const std::string& point) {
  const char* value = std::getenv(point == "checkpoint" ? "HEXAD_FAULTS_CHECKPOINT_DIR" : "HEXAD_FAULTS_REFIT_DIR");
  return value ? value : "";
}

Begun::Begun(const std::string& point) : point_(point), inotify_(::inotify_init1(IN_CLOEXEC)) {
  std::error_code none;
  if (is_checkpoint()) {
    folders_.push_back(folder_of(point));
  } else {
    for (const auto& entry : fs::directory_iterator(folder_of(point), none)) folders_.push_back(entry.path());
  }
  for (const fs::path& folder : folders_) ::inotify_add_watch(inotify_, folder.c_str(), IN_CREATE);
}

Begun::~Begun() { ::close(inotify_); }

bool Begun::is_begun(const std::string& name) const {
  return is_checkpoint() ? name.starts_with("tmp_step_") : name.ends_with(".part");
}

bool Begun::wait(int timeout_ms) const {
  pollfd ready{inotify_, POLLIN, 0};
  if (::poll(&ready, 1, timeout_ms) <= 0) return false;
  alignas(inotify_event) char bytes[16384];
  const ssize_t count = ::read(inotify_, bytes, sizeof bytes);
  bool found = false;
  for (ssize_t at = 0; at < count;) {
    const auto* event = reinterpret_cast<const inotify_event*>(bytes + at);
    found |= event->len > 0 && is_begun(event->name);
    at += static_cast<ssize_t>(sizeof *event + event->len);
  }
  return found;
}

bool Begun::unfinished() const {
  std::error_code none;
  for (const fs::path& folder : folders_) {
    for (const auto& entry : fs::directory_iterator(folder, none))
      if (is_begun(entry.path().filename())) return true;
  }
  return false;
}

// Without a name, so that it goes with the process.
FullDisk::FullDisk(const fs::path& folder)
    : descriptor_(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)) {
  if (descriptor_ < 0) throw std::runtime_error("cannot fill " + folder.string());
  fill();
}

void FullDisk::fill() {
  const std::string block(1 << 16, 'x');
  for (size_t size = block.size(); size > 0; size /= 2)
    while (::write(descriptor_, block.data(), size) > 0) {
    }
}

FullDisk::~FullDisk() { ::close(descriptor_); }

void wait_until_met(const Begun& begun, const std::function<void()>& meanwhile) {
  constexpr int kLookMs = 10, kStuckMs = 500, kTimes = 3, kMostLooks = 6000;
  int times = 0, stuck_ms = 0;
  for (int look = 0; look < kMostLooks && stuck_ms < kStuckMs && times < kTimes; ++look) {
    meanwhile();
    const bool is_new = begun.wait(kLookMs);
    stuck_ms = !is_new && begun.unfinished() ? stuck_ms + kLookMs : 0;
    times += is_new && begun.is_checkpoint();
  }
}

}  // namespace faults
