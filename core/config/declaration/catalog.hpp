// The plugins that are installed, as their manifests declare them. No code of theirs is opened.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/config/declaration/outline.hpp"
#include "core/manifest/discovery.hpp"

namespace hexad::config {

// One plugin that was found. What its manifest says of its configuration is read when it is asked for; not for several
// threads at once.
class Installed {
 public:
  explicit Installed(plugin::Candidate found);

  const plugin::Candidate& candidate() const { return candidate_; }
  const std::string& name() const { return candidate_.manifest->name; }
  plugin::Kind kind() const { return candidate_.manifest->kind; }
  std::string manifest() const { return candidate_.manifest_path.string(); }  // its file

  // Empty, or null: the manifest says nothing of configuration, or is refused.
  const Outline& outline() const { return outline_; }
  const Declaration* declaration() const;
  const Declaration* keys() const;  // its keys and `select` alone
  // Why the manifest is refused, its declaration read; else empty.
  const std::string& problem() const;

 private:
  plugin::Candidate candidate_;
  Outline outline_;
  mutable bool is_read_ = false;
  mutable std::optional<Declaration> declaration_, keys_;
  mutable std::string problem_;
};

class Catalog {
 public:
  // Everything on the search path that `plugins.paths` of the configuration begins. A manifest that cannot be read is
  // left out: `hexad plugin list` names it.
  explicit Catalog(const yaml::Node& root);
  explicit Catalog(plugin::Options options);

  const std::deque<Installed>& all() const { return found_; }
  // The plugin of this name, of one of its other names (`named`), or at a path; null if there is none.
  const Installed* find(plugin::Kind kind, const std::string& name);
  // That of its own name alone.
  const Installed* installed(plugin::Kind kind, const std::string& name) const;
  // Why find() gives none: where it was looked for, which name is nearest, which manifests are unreadable.
  std::string why_missing(plugin::Kind kind, const std::string& name) const;

 private:
  plugin::Options options_;
  std::deque<Installed> found_;  // addresses stay
};

}  // namespace hexad::config
