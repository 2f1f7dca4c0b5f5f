#include "app/doctor/disk.hpp"

#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "lib/base/file/file_lock.hpp"
#include "lib/process/descriptor.hpp"

namespace hexad::doctor {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMiB = uint64_t{1} << 20, kGiB = uint64_t{1} << 30;
constexpr uint64_t kLeastFree = kGiB, kFewFree = 20 * kGiB;  // a checkpoint of 1.5B parameters with Adam's state: 20 GB
constexpr uint64_t kLeastTemporary = 64 * kMiB;
constexpr uint64_t kSharedOfCard = 32 * kMiB;  // Docker's 64 MiB serve one card and fail with eight

// By linux/magic.h, and by others' sources for what is not of the kernel's tree.
std::string kind_of(uint64_t magic) {
  static constexpr std::array<std::pair<uint64_t, const char*>, 19> kKinds = {{{0xEF53, "ext4"},
                                                                               {0x58465342, "XFS"},
                                                                               {0x9123683E, "btrfs"},
                                                                               {0x2FC12FC1, "ZFS"},
                                                                               {0xF2F52010, "F2FS"},
                                                                               {0x01021994, "tmpfs"},
                                                                               {0x858458F6, "ramfs"},
                                                                               {0x794C7630, "overlay"},
                                                                               {0x6969, "NFS"},
                                                                               {0xFF534D42, "CIFS"},
                                                                               {0xFE534D42, "SMB"},
                                                                               {0x0BD00BD0, "Lustre"},
                                                                               {0x47504653, "GPFS"},
                                                                               {0x19830326, "BeeGFS"},
                                                                               {0x00C36400, "Ceph"},
                                                                               {0x65735546, "FUSE"},
                                                                               {0x01021997, "9p"},
                                                                               {0x4D44, "FAT"},
                                                                               {0x2011BAB0, "exFAT"}}};
  for (const auto& [number, name] : kKinds)
    if (number == magic) return name;
  return fmt::format("file system {:#x}", magic);
}

// What errno says of a call that failed.
std::string reason(bool well) { return well ? "" : std::strerror(errno); }

void try_files(const fs::path& folder, Place& place) {
  const fs::path file = folder / "file", link = folder / "link";
  const process::Descriptor made(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made || ::write(made.get(), "x", 1) != 1) {
    place.not_written = reason(false);
    return;
  }
  place.not_locked = reason(take_lock(made.get()));  // as a checkpoint_dir
  place.not_linked = reason(::symlink("file", link.c_str()) == 0);
}

std::string room(const Place& place) {
  return fmt::format("{} ({}): {} free of {}", place.path.string(), place.kind, size_text(place.free),
                     size_text(place.total));
}

// Of one that has room at all: /proc has none.
bool is_full(const Place& place, uint64_t wanted) { return place.total > 0 && place.free < wanted; }

// What is the same of every place; empty where it can be written.
Findings unusable(const Place& place, const char* what, Level level, const char* mend) {
  if (!place.not_there.empty())
    return {{level, "disk", fmt::format("{} {}: {}", what, place.path.string(), place.not_there), mend}};
  if (place.files_left == 0)
    return {{Level::problem, "disk",
             fmt::format("{} {} has no inode left: no file can be made, though {} are free", what, place.path.string(),
                         size_text(place.free)),
             "remove small files there, or name another place"}};
  if (!place.not_written.empty())
    return {{level, "disk", fmt::format("{} {} cannot be written: {}", what, place.path.string(), place.not_written),
             mend}};
  return {};
}

}  // namespace

Place look_at(const fs::path& folder) {
  Place place = {.path = folder};
  struct statfs kind {};
  struct statvfs space {};
  if (::statfs(folder.c_str(), &kind) != 0 || ::statvfs(folder.c_str(), &space) != 0) {
    place.not_there = reason(false);
    return place;
  }
  place.kind = kind_of(static_cast<uint32_t>(kind.f_type));
  place.free = uint64_t{space.f_bavail} * space.f_frsize, place.total = uint64_t{space.f_blocks} * space.f_frsize;
  if (space.f_files > 0) place.files_left = space.f_favail;  // file systems without inodes say 0 of 0
  std::string own = (folder / ".hexad-doctor-XXXXXX").string();
  if (::mkdtemp(own.data()) == nullptr) {
    place.not_written = reason(false);
    return place;
  }
  try_files(own, place);
  std::error_code kept;
  fs::remove_all(own, kept);
  return place;
}

Findings current_folder(const Place& place) {
  const std::string what = "current folder " + room(place);
  const char* const elsewhere = "start hexad elsewhere, or set logger.log_dir and checkpointing.checkpoint_dir";
  if (is_full(place, kLeastFree))
    return {{Level::problem, "disk", what + ", wanted 1 GiB for logs and checkpoints",
             std::string("free space there; ") + elsewhere}};
  if (Findings found = unusable(place, "the current folder", Level::note, elsewhere); !found.empty()) return found;
  Findings found;
  if (place.free < kFewFree)
    found.push_back({Level::note, "disk", what,
                     "a checkpoint of 1.5B parameters with its optimizer takes 20 GiB: free space, set "
                     "checkpointing.keep_top_k or checkpointing.save_optimizer=false"});
  else
    found.push_back({Level::ok, "disk", what});
  if (!place.not_locked.empty())
    found.push_back({Level::note, "disk", fmt::format("{} keeps no locks: {}", place.path.string(), place.not_locked),
                     "give every run a checkpoint_dir of its own: nothing keeps two from writing into one"});
  if (!place.not_linked.empty())
    found.push_back({Level::note, "disk",
                     fmt::format("{} keeps no symbolic links: {}", place.path.string(), place.not_linked),
                     "models of a Hugging Face cache and refits by disk want links: put these on another file system"});
  return found;
}

Findings temporary_files(const Place& place) {
  const std::string what = "temporary files " + room(place);
  const char* const mend = "set TMPDIR to a folder that you can write";
  if (is_full(place, kLeastTemporary)) return {{Level::problem, "disk", what + ", wanted 64 MiB", mend}};
  if (Findings found = unusable(place, "the folder of temporary files", Level::problem, mend); !found.empty())
    return found;
  return {{Level::ok, "disk", what}};
}

Findings shared_memory(const Place& place, int cards) {
  const char* const mend = "in a container: docker run --shm-size=1g, or --ipc=host; else mount tmpfs there";
  const uint64_t wanted = cards > 1 ? kSharedOfCard * static_cast<uint64_t>(cards) : 0;
  if (!place.not_there.empty() || !place.not_written.empty()) {
    const std::string& why = place.not_there.empty() ? place.not_written : place.not_there;
    return {{wanted > 0 ? Level::problem : Level::note, "shm",
             fmt::format("{} cannot be used: {}", place.path.string(), why), mend}};
  }
  if (place.free < wanted)
    return {{Level::problem, "shm",
             fmt::format("{}, wanted {}: NCCL has buffers of {} ranks there", room(place), size_text(wanted), cards),
             mend}};
  return {{Level::ok, "shm", room(place)}};
}

}  // namespace hexad::doctor
