// A cache of the Hub as `hf download` leaves it, in a folder of the test's own, which HF_HUB_CACHE names meanwhile.
#pragma once
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "tests/support/toy/toy.hpp"

namespace test_support {

// The value of a variable of the environment while it lives; nothing: it is not set.
class Variable {
 public:
  Variable(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
  }
  std::string name_;
  std::optional<std::string> before_;
};

// Commits, of which the first two begin alike.
inline const std::string kCommit = "0a1b" + std::string(36, '7'), kLater = "0a1b" + std::string(36, '8'),
                         kOther = "beef" + std::string(36, '9');

class HubCache {
 public:
  // Bytes of a blob, and the link of that name in the snapshot.
  void file(const std::string& repository, const std::string& name, const std::string& text,
            const std::string& commit = kCommit) {
    const std::string blob = "blob" + std::to_string(++blobs_);
    dir.write(toy::fs::path(repository) / "blobs" / blob, text);
    const toy::fs::path link = snapshot(repository, commit) / name;
    toy::fs::create_directories(link.parent_path());
    toy::fs::create_symlink((dir / repository / "blobs" / blob).lexically_relative(link.parent_path()), link);
  }
  void files(const std::string& repository, const std::map<std::string, std::string>& texts,
             const std::string& commit = kCommit) {
    for (const auto& [name, text] : texts) file(repository, name, text, commit);
    ref(repository, "main", commit);
  }
  void ref(const std::string& repository, const std::string& name, const std::string& commit) const {
    dir.write(toy::fs::path(repository) / "refs" / name, commit);
  }
  toy::fs::path snapshot(const std::string& repository, const std::string& commit = kCommit) const {
    return dir / repository / "snapshots" / commit;
  }

  toy::TempDir dir;

 private:
  Variable variable_{"HF_HUB_CACHE", dir.path().string()};
  int blobs_ = 0;
};

}  // namespace test_support
