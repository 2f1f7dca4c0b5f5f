#include "core/config/declaration/catalog.hpp"

#include <algorithm>

#include "lib/base/error.hpp"

namespace hexad::config {
namespace {

plugin::Options search_options(const yaml::Node& root) {
  plugin::Options options;
  const yaml::Node* paths = root.find("plugins.paths");
  if (!paths || !paths->is_list()) return options;
  for (const yaml::Node& path : paths->items()) {
    if (path.is_string()) options.paths.emplace_back(path.as_string());
  }
  return options;
}

}  // namespace

Installed::Installed(plugin::Candidate found) : candidate_(std::move(found)), problem_(candidate_.problem) {
  is_read_ = !problem_.empty();
  try {
    if (!is_read_) outline_ = read_outline(*candidate_.manifest, manifest());
  } catch (const Error& error) {
    problem_ = error.what();
    is_read_ = true;
  }
}

const Declaration* Installed::declaration() const {
  if (!is_read_) {
    is_read_ = true;
    try {
      declaration_ = read_declaration(*candidate_.manifest, manifest());
    } catch (const Error& error) {
      problem_ = error.what();
    }
  }
  return declaration_ ? &*declaration_ : nullptr;
}

const Declaration* Installed::keys() const {
  if (declaration_) return &*declaration_;
  if (!keys_ && problem_.empty()) {
    try {
      keys_ = read_keys(*candidate_.manifest, manifest());
    } catch (const Error& error) {
      problem_ = error.what();
      is_read_ = true;
    }
  }
  return keys_ ? &*keys_ : nullptr;
}

const std::string& Installed::problem() const {
  declaration();
  return problem_;
}

Catalog::Catalog(const yaml::Node& root) : Catalog(search_options(root)) {}

Catalog::Catalog(plugin::Options options) : options_(std::move(options)) {
  for (plugin::Candidate& candidate : plugin::discover(options_).candidates) {
    if (candidate.manifest && candidate.shadowed_by.empty()) found_.emplace_back(std::move(candidate));
  }
}

const Installed* Catalog::find(plugin::Kind kind, const std::string& name) {
  const bool is_path = plugin::is_plugin_path(name);
  const std::filesystem::path path = is_path ? std::filesystem::absolute(name).lexically_normal() : "";
  const auto is_it = [&](const Installed& each) {
    if (each.kind() != kind) return false;
    const plugin::Candidate& found = each.candidate();
    if (is_path) return found.manifest_path == path || found.library() == path;
    if (each.name() == name) return true;
    return std::ranges::find(each.outline().named, name) != each.outline().named.end();
  };
  const auto found = std::ranges::find_if(found_, is_it);
  if (found != found_.end()) return &*found;
  if (!is_path) return nullptr;
  try {
    return &found_.emplace_back(plugin::find_plugin(options_, kind, name));
  } catch (const Error&) {
    return nullptr;  // the run says why
  }
}

const Installed* Catalog::installed(plugin::Kind kind, const std::string& name) const {
  const auto found =
      std::ranges::find_if(found_, [&](const Installed& each) { return each.kind() == kind && each.name() == name; });
  return found == found_.end() ? nullptr : &*found;
}

std::string Catalog::why_missing(plugin::Kind kind, const std::string& name) const {
  try {
    plugin::find_plugin(options_, kind, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace hexad::config
