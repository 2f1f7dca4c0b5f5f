#include "lib/base/said/reported.hpp"

#include <spdlog/spdlog.h>

#include "lib/base/said/once.hpp"
#include "lib/base/said/printable.hpp"

namespace hexad {

void say_name_is_taken(const std::string& name) {
  if (!first_time("reported: " + name)) return;
  spdlog::warn(
      "a plugin reports the metric '{}', and so does the engine or another plugin, whose value stays: the plugin's is "
      "left out. Give it another name in the plugin",
      one_line(name));
}

void add_reported(std::map<std::string, double>& values, const std::map<std::string, double>& reported) {
  for (const auto& [name, value] : reported)
    if (!values.try_emplace(name, value).second) say_name_is_taken(name);
}

}  // namespace hexad
