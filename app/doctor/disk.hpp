// A folder that a run writes to: room, and what its file system keeps.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "app/doctor/finding.hpp"

namespace hexad::doctor {

struct Place {
  std::filesystem::path path;
  std::string kind = "";         // of file system: "ext4", "NFS"; a number where the name is not known here
  uint64_t free = 0, total = 0;  // bytes, those free for this user
  uint64_t files_left = 1;       // that can still be made; 0: none
  // Why not; empty where it can. Of a place that cannot be written the others are not tried.
  std::string not_there = "", not_written = "", not_locked = "", not_linked = "";
};

// Tries all of it, in a folder of its own there that it removes again.
Place look_at(const std::filesystem::path& folder);

// Of the folder that relative log_dir and checkpoint_dir count from, and of that of temporary files.
Findings current_folder(const Place& place);
Findings temporary_files(const Place& place);

// Of /dev/shm, where NCCL puts the buffers of ranks of one host: so many cards use it.
Findings shared_memory(const Place& place, int cards);

}  // namespace hexad::doctor
