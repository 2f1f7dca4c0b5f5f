#include "core/config/load/load.hpp"

#include "lib/base/error.hpp"
#include "lib/shipped/shipped.hpp"
#include "lib/yaml/interpolation.hpp"
#include "lib/yaml/merge.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config {
namespace {

// Files that name each other twice multiply; no inheritance comes near this many reads.
constexpr size_t kMostFiles = 1000;

// What Python's `if` makes of a value.
bool truthy(const yaml::Node& node) {
  if (node.is_null() || node.is_missing()) return false;
  if (node.is_bool()) return node.as_bool();
  if (node.is_number()) return node.as_double() != 0;
  if (node.is_string()) return !node.as_string().empty();
  return node.is_map() ? !node.entries().empty() : !node.items().empty();
}

void erase(yaml::Node& map, const std::string& key) {
  std::erase_if(map.entries(), [&](const auto& entry) { return entry.first == key; });
}

class Inheritance {
 public:
  Inheritance(AbsentParent absent_parent, Look look) : absent_parent_(absent_parent), look_(look) {}

  yaml::Node read(const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
    if (error) fail(ErrorKind::config, "cannot read the configuration file {}: {}", path.string(), error.message());
    if (std::ranges::find(stack_, canonical) != stack_.end()) {
      fail(ErrorKind::config, "{}: the file inherits from itself through `defaults`", path.string());
    }
    if (++files_ > kMostFiles) fail(ErrorKind::config, "`defaults` come to more than {} files", kMostFiles);
    stack_.push_back(canonical);
    yaml::Node config = shipped::read_file(path, shipped_);
    if (look_ && files_ == 1) look_(config);
    const yaml::Node* defaults = config.child("defaults");
    if (defaults && !defaults->is_missing()) {
      const std::vector<std::string> parents = parent_names(config, *defaults);
      erase(config, "defaults");
      yaml::Node base(yaml::Node::Map{}, config.location());
      for (const std::string& parent : parents) merge_sections(base, read_parent(path.parent_path(), parent));
      merge_sections(base, std::move(config));
      config = std::move(base);
    }
    stack_.pop_back();
    return config;
  }

 private:
  // Hydra's form: `../config/name@_here_`, without .yaml.
  yaml::Node read_parent(const std::filesystem::path& folder, std::string name) {
    constexpr std::string_view kHere = "@_here_";
    if (!name.ends_with(kHere)) return read(shipped::file_of(folder / name, name, shipped_));
    name.resize(name.size() - kHere.size());
    const std::filesystem::path file = folder / (name + ".yaml");
    std::error_code unreadable;
    if (!std::filesystem::exists(file, unreadable)) {
      std::optional<yaml::Node> known = absent_parent_ ? absent_parent_(name) : std::nullopt;
      if (known) return std::move(*known);
    }
    return read(file);
  }

  static std::vector<std::string> parent_names(const yaml::Node& config, const yaml::Node& defaults) {
    const yaml::Node value = yaml::Evaluator(config).evaluate({&config, &defaults});
    if (value.is_string()) return {value.as_string()};
    if (!value.is_list()) {
      fail(ErrorKind::config, "{}: defaults: got {}, wanted a file name or a list of them", value.location().text(),
           value.describe());
    }
    std::vector<std::string> names;
    for (const yaml::Node& name : value.items()) names.push_back(python_str(name));
    return names;
  }

  static void merge_sections(yaml::Node& base, yaml::Node config) {
    for (auto& [key, section] : config.entries()) {
      // As in NeMo-RL, a top-level reference must hold within its own file.
      if (section.is_string() && yaml::has_interpolation(section.as_string())) {
        yaml::Evaluator evaluator(config);
        const yaml::Evaluator::Chain target = evaluator.follow({&config, &section});
        if (target.back()->is_missing()) {
          fail(ErrorKind::config, "{}: {}: it refers to a mandatory value that is not set", section.location().text(),
               key);
        }
        if (target.back()->is_string()) evaluator.evaluate(target);
      }
      const yaml::Node* marker = section.child("_override_");
      if (!marker || !truthy(yaml::Evaluator(config).evaluate({&config, &section, marker}))) continue;
      erase(section, "_override_");
      erase(base, key);
    }
    merge(base, {}, config);
  }

  AbsentParent absent_parent_;
  Look look_;
  const std::filesystem::path shipped_ = shipped::folder();
  std::vector<std::filesystem::path> stack_;
  size_t files_ = 0;
};

}  // namespace

yaml::Node read_with_parents(const std::filesystem::path& path, AbsentParent absent_parent, Look look) {
  return Inheritance(absent_parent, look).read(shipped::file_of(path, path, shipped::folder()));
}

}  // namespace hexad::config
