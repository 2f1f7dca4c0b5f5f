// Configurations in temporary files, and what is said about them.
#pragma once
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/config/check.hpp"
#include "core/config/declaration/run_schema.hpp"
#include "core/config/load/load.hpp"
#include "lib/base/error.hpp"
#include "lib/yaml/interpolation.hpp"

namespace hexad::config {

// NeMo-RL's loader as a whole, which the engine's own takes apart to add defaults before interpolations: a file, its
// parents and the overrides, with every interpolation resolved.
inline yaml::Node load(const std::filesystem::path& path, const std::vector<std::string>& overrides = {}) {
  yaml::Node root = read_with_parents(path);
  for (const std::string& text : overrides) apply_override(root, yaml::parse_override(text), nullptr);
  resolve_interpolations(root);
  return root;
}

}  // namespace hexad::config

namespace config_test {

using Overrides = std::vector<std::string>;

// A folder of files that is gone with the object.
class Files {
 public:
  Files(const char* name, const std::string& text)
      : Files(std::vector<std::pair<std::string, std::string>>{{name, text}}) {}
  explicit Files(const std::vector<std::pair<std::string, std::string>>& files) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / fmt::format("hexad_config_test_{}_{}", ::getpid(), count++);
    for (const auto& [name, text] : files) {
      std::filesystem::create_directories((path_ / name).parent_path());
      std::ofstream(path_ / name) << text;
    }
  }
  ~Files() { std::filesystem::remove_all(path_); }
  Files(const Files&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The message of the config error that `action` throws, with the folder's name cut from places; "" if there is none.
template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const hexad::Error& error) {
    CHECK(error.kind() == hexad::ErrorKind::config);
    CHECK(error.exit_code() == 2);
    std::string text = error.what();
    const std::string folder = std::filesystem::temp_directory_path().string() + "/hexad_config_test_";
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
      text.erase(at, text.find('/', at + folder.size()) + 1 - at);
    }
    return text;
  }
  return "";
}

inline hexad::yaml::Node load_text(const std::string& text, const Overrides& overrides = {}) {
  const Files files("a.yaml", text);
  return hexad::config::load(files / "a.yaml", overrides);
}

inline std::string load_error(const std::string& text, const Overrides& overrides = {}) {
  return message_of([&] { load_text(text, overrides); });
}

// The engine's keys, and those of every plugin that is installed.
inline const hexad::config::Schema& every_schema() {
  using namespace hexad::config;
  static const Schema all = [] {
    const hexad::yaml::Node root{hexad::yaml::Node::Map{}};
    Selection selection = select_plugins(root, std::make_shared<Catalog>(root));
    return known_schema(selection);
  }();
  return all;
}

// A config that is valid, to which tests add what they test.
inline const std::string kValid =
    "policy: {model_name: m}\ndata: {train: {dataset_name: arithmetic}}\ngrpo: {num_prompts_per_step: 32}\n";

// What resolve() says: every error, or "".
inline std::string resolve_error(const Overrides& overrides, const std::string& text = kValid,
                                 const hexad::config::Compat& compat = {}) {
  const Files files("a.yaml", text);
  return message_of([&] { hexad::config::resolve(files / "a.yaml", overrides, compat); });
}

inline hexad::config::Resolved resolve_text(const Overrides& overrides, const std::string& text = kValid,
                                            const hexad::config::Compat& compat = {}) {
  const Files files("a.yaml", text);
  return hexad::config::resolve(files / "a.yaml", overrides, compat);
}

// True if one of the notices is about the key and holds the words.
inline bool has_notice(const hexad::config::Resolved& resolved, const std::string& key, const std::string& words) {
  for (const hexad::config::Problem& notice : resolved.notices) {
    if (notice.key == key && notice.message.find(words) != std::string::npos) return true;
  }
  return false;
}

inline void check_says(const std::string& message, const std::string& words) {
  CHECK_MESSAGE(message.find(words) != std::string::npos, "got: " << message << "\nwanted: " << words);
}

}  // namespace config_test
