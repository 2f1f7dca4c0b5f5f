#include "app/doctor/finding.hpp"

#include <exception>

#include <fmt/format.h>

namespace hexad::doctor {

const char* name_of(Level level) { return level == Level::ok ? "ok" : level == Level::note ? "note" : "problem"; }

Findings probed(const std::string& topic, const std::function<Findings()>& probe) {
  try {
    return probe();
  } catch (const std::exception& error) {
    return {{Level::note, topic, std::string("cannot be looked at: ") + error.what(),
             "nothing follows from it for a run; please report it with this line"}};
  }
}

std::string size_text(uint64_t bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  const auto size = static_cast<double>(bytes);
  return size < kGiB ? fmt::format("{:.0f} MiB", size / kMiB) : fmt::format("{:.1f} GiB", size / kGiB);
}

}  // namespace hexad::doctor
