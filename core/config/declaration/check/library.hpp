// What a plugin's check library (hexad/check.h) says of its block.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/declaration/catalog.hpp"
#include "core/config/declaration/declared_rules.hpp"
#include "core/config/declaration/scope.hpp"
#include "lib/base/file/resolved_file.hpp"
#include "lib/process/child.hpp"

namespace hexad::config {

struct Checked {
  std::vector<Problem> problems;
  CheckNames names;  // what rules read as check.NAME
};

// The library in a child process, which opens it while the configuration is still read. A library that is not the
// manifest's (by its digest), that others could have changed, that crashes, hangs or says nonsense is one error that
// names it. Forks: make one before any thread exists.
class CheckLibrary {
 public:
  // Null where the manifest names no library. `allow_insecure`: plugins.allow_insecure_dirs.
  static std::shared_ptr<CheckLibrary> of(const Installed& installed, bool allow_insecure);

  CheckLibrary(const plugin::Candidate& plugin, bool allow_insecure);
  CheckLibrary(const CheckLibrary&) = delete;
  CheckLibrary& operator=(const CheckLibrary&) = delete;

  // What it says of the scope's block, within 500 ms.
  Checked ask(const Scope& scope);

 private:
  void start();

  std::string plugin_;
  std::filesystem::path file_;
  std::string sha256_;
  bool trusted_;
  std::optional<ResolvedFile> opened_;
  std::string refusal_;  // why there is no process
  bool is_asked_ = false;
  process::Child child_;
  process::Descriptor socket_;
};

// The process in which a check library runs. Opens the library if its digest is `sha256` and, where it is not
// `trusted`, nobody else could have changed what it needs. Reads the input (hexad/check.h) from the socket `parent`
// until that side has ended, and writes one JSON object: {"findings": [[severity, key, message], ...], "names": {name:
// value, ...}}, or {"problem": text} and what else there is.
void serve_check(const ResolvedFile& library, const std::string& sha256, bool trusted, int parent);

}  // namespace hexad::config
