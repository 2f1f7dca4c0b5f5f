// The memory that a rank has: a card's, or its share of the host's.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/doctor/nvml.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::plan {

struct Room {
  bool on_cards = false;         // of cards; else of the host, whose CPUs compute
  std::optional<int64_t> bytes;  // of a rank; absent: not known here
  std::string what = "";         // "a card has 79.6 GiB", "each of 4 ranks has 7.8 GiB of this host's memory"
  // False: of CPUs that `cluster.device: auto` would take for want of cards, where the run may be meant for others.
  bool is_meant = true;
};

// Of the run that `root` configures, on this machine. The driver is asked where the run would use cards.
Room room_here(const yaml::Node& root);
// Of a card, or a host's share, that is not here.
Room room_elsewhere(const yaml::Node& root, int64_t bytes);
// The same from what a machine says: `fs_root` is where /proc and /sys are looked for; `driver` null: ranks use CPUs.
Room room_of(const yaml::Node& root, const std::filesystem::path& fs_root, const doctor::Driver* driver);

// Bytes of "80GiB", "640 MB", "1.5TiB"; nothing of a text that is none. A bare number is of bytes.
std::optional<int64_t> bytes_of_text(const std::string& text);

// "79.6 GiB"; below a GiB "512.0 MiB", below a MiB "12.5 KiB".
std::string bytes_text(int64_t bytes);

}  // namespace hexad::plan
