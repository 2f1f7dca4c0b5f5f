#include "app/doctor/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"

namespace hexad::doctor {
namespace {

const char* colour_of(Level level) {
  return level == Level::ok ? "\x1b[32m" : level == Level::note ? "\x1b[33m" : "\x1b[31m";
}

std::string level_cell(Level level, bool colours) {
  const std::string cell = fmt::format("{:<8}", name_of(level));
  return colours ? colour_of(level) + cell + "\x1b[0m" : cell;
}

std::string counted(size_t number, const char* what) {
  return fmt::format("{} {}{}", number == 0 ? "no" : std::to_string(number), what, number == 1 ? "" : "s");
}

}  // namespace

std::string table(const Findings& findings, bool colours) {
  std::string text;
  for (const Finding& each : findings) {
    text +=
        fmt::format("{} {:<9} {}\n", level_cell(each.level, colours), each.topic, one_line(without_secrets(each.text)));
    if (!each.mend.empty()) text += fmt::format("{:<19}mend: {}\n", "", one_line(without_secrets(each.mend)));
  }
  return text + fmt::format("{}, {}\n", counted(count_of(findings, Level::problem), "problem"),
                            counted(count_of(findings, Level::note), "note"));
}

nlohmann::ordered_json json_of(const Build& build, const Findings& findings) {
  nlohmann::ordered_json answer = {{"version", build.version},
                                   {"commit", build.commit},
                                   {"problems", count_of(findings, Level::problem)},
                                   {"notes", count_of(findings, Level::note)},
                                   {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& each : findings)
    answer["findings"].push_back({{"topic", each.topic},
                                  {"level", name_of(each.level)},
                                  {"text", without_secrets(each.text)},
                                  {"mend", without_secrets(each.mend)}});
  return answer;
}

size_t count_of(const Findings& findings, Level level) {
  return static_cast<size_t>(std::ranges::count(findings, level, &Finding::level));
}

}  // namespace hexad::doctor
