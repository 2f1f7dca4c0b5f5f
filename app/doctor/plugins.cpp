// The folders of plugins in the order in which they are searched, and what is wrong with one that is in them.
#include <algorithm>

#include <fmt/format.h>

#include "app/doctor/topics.hpp"

namespace hexad::doctor {

Findings plugins(const std::vector<plugin::Folder>& searched, const std::vector<ListedPlugin>& listed) {
  Findings found;
  for (const plugin::Folder& folder : searched) {
    const std::string what = fmt::format("{}: {}", folder.origin, folder.text());
    if (!folder.problem.empty())
      found.push_back({Level::problem, "plugins", what, "give yourself the right to list it, or leave it out"});
    else if (!folder.exists && !folder.trusted && folder.origin != "user")  // which nobody need have
      found.push_back({Level::note, "plugins", what, "make it, or take it out of HEXAD_PLUGIN_PATH"});
    else if (folder.exists)
      found.push_back({Level::ok, "plugins", what});
  }
  const bool any = std::ranges::any_of(listed, [](const ListedPlugin& each) { return each.state == "ok"; });
  if (!any)
    found.push_back({Level::problem, "plugins",
                     "there is none that can be loaded, and a run wants a backend and a loss",
                     "make build, or install them beside the program: cmake --install BUILD --component app"});
  for (const ListedPlugin& each : listed) {
    if (each.state == "refused")
      found.push_back(
          {Level::problem, "plugins",
           each.reason.starts_with(each.name) ? each.reason : fmt::format("{} is refused: {}", each.name, each.reason),
           "put it right, or remove its manifest"});
    if (each.state == "not built") found.push_back({Level::note, "plugins", each.name + " is not built", each.reason});
    if (each.state == "shadowed")
      found.push_back({Level::note, "plugins", fmt::format("{} is shadowed {}", each.name, each.reason),
                       "name the one that you mean by its path, or remove the other"});
  }
  return found;
}

}  // namespace hexad::doctor
