#include "app/doctor/cgroup.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "app/doctor/small_file.hpp"

namespace hexad::doctor {
namespace {

namespace fs = std::filesystem;

// More is how version 1 says that there is no limit: the largest number of pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

template <typename Number>
void lower_to(std::optional<Number>& least, std::optional<Number> more) {
  if (more && (!least || *more < *least)) least = more;
}

std::optional<uint64_t> number_in(const fs::path& file) {
  const std::optional<std::string> text = small_file(file);
  return text ? leading_number(*text) : std::nullopt;
}

// The folders of a group and of those above it, below a controller's mount. A container's own group is mounted as the
// root, whatever path the kernel tells.
std::vector<fs::path> groups(const fs::path& mount, std::string_view path) {
  std::vector<fs::path> folders = {mount};
  for (const fs::path& part : fs::path(path).relative_path())
    if (part != "." && part != ".." && !part.empty()) folders.push_back(folders.back() / part);
  return folders;
}

void read_memory(const fs::path& group, const char* most, const char* used, const char* droppable, Share& share) {
  const std::optional<uint64_t> limit = number_in(group / most);
  if (!limit || *limit >= kNoLimit) return;
  lower_to(share.memory_limit, limit);
  const std::optional<uint64_t> now = number_in(group / used);
  if (!now) return;
  const std::string stat = small_file(group / "memory.stat").value_or("");
  const uint64_t dropped = std::min(leading_number(line_behind(stat, droppable)).value_or(0), *now);
  lower_to(share.memory_left, std::optional(*limit - std::min(*now - dropped, *limit)));
}

void read_cores(std::optional<uint64_t> quota, std::optional<uint64_t> period, Share& share) {
  if (quota && period && *period > 0)
    lower_to(share.cores, std::optional(static_cast<double>(*quota) / static_cast<double>(*period)));
}

void read_group_2(const fs::path& group, Share& share) {
  const std::string cpu = small_file(group / "cpu.max").value_or("");  // "150000 100000", "max 100000"
  read_cores(leading_number(cpu), leading_number(std::string_view(cpu).substr(std::min(cpu.find(' '), cpu.size()))),
             share);
  read_memory(group, "memory.max", "memory.current", "inactive_file", share);
  lower_to(share.tasks, number_in(group / "pids.max"));
}

void read_group_1(std::string_view controller, const fs::path& group, Share& share) {
  if (controller == "cpu")  // a quota of -1 is none
    read_cores(number_in(group / "cpu.cfs_quota_us"), number_in(group / "cpu.cfs_period_us"), share);
  if (controller == "memory")
    read_memory(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", share);
  if (controller == "pids") lower_to(share.tasks, number_in(group / "pids.max"));
}

}  // namespace

Share read_share(const fs::path& root) {
  Share share;
  const fs::path mounts = root / "sys/fs/cgroup";
  const std::string text = small_file(root / "proc/self/cgroup").value_or("");  // lines of "ID:CONTROLLERS:PATH"
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t names = line.find(':'), path = names == line.npos ? line.npos : line.find(':', names + 1);
    if (path == line.npos) continue;
    const std::string_view place = line.substr(path + 1);
    std::string_view controllers = line.substr(names + 1, path - names - 1);
    if (controllers.empty())
      for (const fs::path& group : groups(mounts, place)) read_group_2(group, share);
    while (!controllers.empty()) {
      const size_t comma = std::min(controllers.find(','), controllers.size());
      const std::string_view controller = controllers.substr(0, comma);
      controllers.remove_prefix(std::min(comma + 1, controllers.size()));
      for (const fs::path& group : groups(mounts / controller, place)) read_group_1(controller, group, share);
    }
  }
  return share;
}

}  // namespace hexad::doctor
