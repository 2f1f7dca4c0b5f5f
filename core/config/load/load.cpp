#include "core/config/load/load.hpp"

#include "core/config/load/inherit.hpp"
#include "core/config/load/override_apply.hpp"

namespace hexad::config {

yaml::Node compose(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  yaml::Node root = read_with_parents(path);
  for (const std::string& text : overrides) apply_override(root, yaml::parse_override(text), nullptr);
  return root;
}

yaml::Node load(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  yaml::Node root = compose(path, overrides);
  resolve_interpolations(root);
  return root;
}

}  // namespace hexad::config
