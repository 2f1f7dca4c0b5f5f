#include "core/config/declaration/catalog.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace hexad::config {
namespace {

plugin::Options search_options(const Node& root) {
  plugin::Options options;
  const Node* paths = root.find("plugins.paths");
  if (!paths || !paths->is_list()) return options;
  for (const Node& path : paths->items()) {
    if (path.is_string()) options.paths.emplace_back(path.as_string());
  }
  return options;
}

Installed declared(plugin::Candidate candidate) {
  Installed result{std::move(candidate), {}, {}};
  result.problem = result.candidate.problem;
  if (!result.problem.empty()) return result;
  try {
    result.declaration = read_declaration(*result.candidate.manifest, result.candidate.manifest_path.string());
  } catch (const Error& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace

Catalog::Catalog(const Node& root) {
  for (plugin::Candidate& candidate : plugin::discover(search_options(root)).candidates) {
    if (candidate.manifest && candidate.shadowed_by.empty()) found_.push_back(declared(std::move(candidate)));
  }
}

const Installed* Catalog::find(plugin::Kind kind, const std::string& name) {
  const auto is_it = [&](const Installed& each) {
    if (each.kind() != kind) return false;
    if (each.name() == name || each.candidate.manifest_path == name || each.candidate.library() == name) return true;
    return each.declaration && std::ranges::find(each.declaration->named, name) != each.declaration->named.end();
  };
  const auto found = std::ranges::find_if(found_, is_it);
  if (found != found_.end()) return &*found;
  if (!name.starts_with('/')) return nullptr;
  try {
    plugin::Candidate candidate = plugin::find_path(name);
    if (candidate.manifest->kind != kind) return nullptr;
    return &found_.emplace_back(declared(std::move(candidate)));
  } catch (const Error&) {
    return nullptr;  // the run says why
  }
}

}  // namespace hexad::config
