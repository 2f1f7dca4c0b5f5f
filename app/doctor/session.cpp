// The clock, and how the terminal writes letters.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "app/doctor/topics.hpp"

namespace hexad::doctor {
namespace {

constexpr std::time_t kDay = std::time_t{24} * 60 * 60;  // of clocks that differ between where it was built and here

std::string date(std::time_t when) {
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min);
}

}  // namespace

Findings clock(std::time_t now, std::time_t built) {
  if (now + kDay < built)
    return {{Level::problem, "clock", fmt::format("{}, before this program was made ({})", date(now), date(built)),
             "set it (timedatectl): servers of https are refused, and files seem to be of the future"}};
  return {{Level::ok, "clock", date(now)}};
}

Findings locale(const Variables& variables) {
  std::string name, from;
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto found = variables.find(variable);
    if (found == variables.end() || found->second.empty()) continue;
    name = found->second, from = variable;
    break;
  }
  if (name.empty()) return {{Level::ok, "locale", "none is set; hexad writes UTF-8"}};
  std::string small = name;
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool is_utf8 = small.find("utf-8") != small.npos || small.find("utf8") != small.npos;
  const bool is_plain = small == "c" || small == "posix" || small.find('.') == small.npos;
  if (is_utf8 || is_plain) return {{Level::ok, "locale", fmt::format("{}={}; hexad writes UTF-8", from, name)}};
  return {{Level::note, "locale", fmt::format("{}={} is not of UTF-8, which hexad writes", from, name),
           fmt::format("{}=C.UTF-8, and a terminal that shows UTF-8", from)}};
}

}  // namespace hexad::doctor
