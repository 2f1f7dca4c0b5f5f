#include "app/plan/room.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/doctor/build.hpp"
#include "app/doctor/cgroup.hpp"
#include "app/doctor/small_file.hpp"

namespace hexad::plan {
namespace {

constexpr int64_t kKiB = 1 << 10;

// All that this process may have of the host, whatever is in use now.
std::optional<int64_t> host_memory(const std::filesystem::path& fs_root) {
  const std::string text = doctor::small_file(fs_root / "proc/meminfo").value_or("");
  const std::optional<uint64_t> total = doctor::leading_number(doctor::line_behind(text, "MemTotal"));
  if (!total) return std::nullopt;
  const auto bytes = static_cast<int64_t>(*total) * kKiB;
  const std::optional<uint64_t> limit = doctor::read_share(fs_root).memory_limit;
  return limit ? std::min(bytes, static_cast<int64_t>(*limit)) : bytes;
}

std::string device_of(const yaml::Node& root) {
  const yaml::Node* device = root.find("cluster.device");
  return device && device->is_string() ? device->as_string() : "auto";
}

int64_t ranks_of(const yaml::Node& root) {
  const yaml::Node* ranks = root.find("cluster.gpus_per_node");
  return ranks && ranks->is_int() ? std::max<int64_t>(1, ranks->as_int()) : 1;
}

Room host_room(const yaml::Node& root, const std::filesystem::path& fs_root) {
  const std::optional<int64_t> all = host_memory(fs_root);
  if (!all) return {false, {}, "how much memory this host has is not known"};
  const int64_t sharers = ranks_of(root);
  const int64_t bytes = *all / sharers;
  if (sharers == 1) return {false, bytes, fmt::format("this host has {}", bytes_text(bytes))};
  return {false, bytes,
          fmt::format("each of {} ranks has {} of this host's {}", sharers, bytes_text(bytes), bytes_text(*all))};
}

}  // namespace

Room room_of(const yaml::Node& root, const std::filesystem::path& fs_root, const doctor::Driver* driver) {
  if (!driver) return host_room(root, fs_root);
  std::vector<uint64_t> memories;  // of the largest, for which cards CUDA gives to the ranks is not known here
  for (const doctor::Card& card : driver->cards)
    if (card.memory > 0 && !card.mig) memories.push_back(card.memory);
  if (memories.empty()) return {true, {}, "there is no card here whose memory is known"};
  std::ranges::sort(memories, std::greater());
  memories.resize(std::min(memories.size(), static_cast<size_t>(ranks_of(root))));
  const auto bytes = static_cast<int64_t>(memories.back());
  return {true, bytes, fmt::format("a card has {}", bytes_text(bytes))};
}

Room room_here(const yaml::Node& root) {
  const std::string device = device_of(root);
  if (device == "cpu") return room_of(root, "/", nullptr);
  doctor::Driver driver;
  if (device != "auto" || !doctor::this_build("").cuda.empty()) driver = doctor::ask_driver();
  Room room = room_of(root, "/", device == "auto" && driver.cards.empty() ? nullptr : &driver);
  room.is_meant = device != "auto" || room.on_cards;
  return room;
}

Room room_elsewhere(const yaml::Node& root, int64_t bytes) {
  return {device_of(root) != "cpu", bytes, fmt::format("a rank has {} (--memory)", bytes_text(bytes))};
}

std::optional<int64_t> bytes_of_text(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number > 0)) return std::nullopt;
  std::string unit(end, text.data() + text.size());
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  for (char& letter : unit) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const auto& [name, bytes] :
       {std::pair("", 1.0), std::pair("b", 1.0), std::pair("mb", 1e6), std::pair("gb", 1e9), std::pair("tb", 1e12),
        std::pair("mib", 0x1p20), std::pair("gib", 0x1p30), std::pair("tib", 0x1p40)})
    if (unit == name && number * bytes >= 1 && number * bytes < 1e18) return static_cast<int64_t>(number * bytes);
  return std::nullopt;
}

std::string bytes_text(int64_t bytes) {
  constexpr double kMiB = 0x1p20, kGiB = 0x1p30;
  const auto size = static_cast<double>(bytes);
  if (size >= kGiB) return fmt::format("{:.1f} GiB", size / kGiB);
  return size >= kMiB ? fmt::format("{:.1f} MiB", size / kMiB) : fmt::format("{:.1f} KiB", size / kKiB);
}

}  // namespace hexad::plan
