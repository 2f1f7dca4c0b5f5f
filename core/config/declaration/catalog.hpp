// The plugins that are installed, as their manifests declare them. No code of theirs is opened.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "core/config/declaration/declaration.hpp"
#include "core/manifest/discovery.hpp"

namespace hexad::config {

// One plugin that was found.
struct Installed {
  plugin::Candidate candidate;
  std::optional<Declaration> declaration;  // nothing: its manifest says nothing of configuration, or cannot be read
  std::string problem;                     // why the manifest is refused; else empty

  const std::string& name() const { return candidate.manifest->name; }
  plugin::Kind kind() const { return candidate.manifest->kind; }
};

class Catalog {
 public:
  // Everything on the search path that `plugins.paths` of the configuration begins. A manifest that cannot be read is left
  // out: `hexad plugin list` names it.
  explicit Catalog(const Node& root);

  const std::deque<Installed>& all() const { return found_; }
  // The plugin of this name, of one of its other names (`named`), or at an absolute path; null if there is none.
  const Installed* find(plugin::Kind kind, const std::string& name);

 private:
  std::deque<Installed> found_;  // addresses stay
};

}  // namespace hexad::config
