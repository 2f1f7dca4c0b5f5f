// The way from a name to a file, folder by folder and link by link, with every folder held open.
#pragma once
#include <sys/stat.h>

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hexad {

// Walks on construction. A relative name counts from the working directory. `trusted`: nobody asks what is insecure.
class Walk {
 public:
  explicit Walk(const std::filesystem::path& name, bool trusted = false);
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // Why the way ends before the name does (of errno); 0 if it does not.
  int reason() const { return reason_; }
  // What is there, without links: an O_PATH descriptor, its status and its real path. Where the way ended early: the
  // last folder on it.
  int descriptor() const { return steps_.back().descriptor; }
  const struct stat& status() const { return steps_.back().status; }
  std::filesystem::path path() const { return path_of(steps_.size() - 1); }

  // What others could have changed on the way (permissions.hpp), or nothing. `as_folder`: what is there is a place of
  // files itself, not only a file in one.
  std::optional<std::string> insecure(bool as_folder) const;

 private:
  struct Step {
    int descriptor;
    std::string name;  // in the folder of the step before; "" of the root
    struct stat status;
  };

  bool go_to(const std::string& part);
  bool follow(int link);
  void leave();
  std::optional<std::string> problem_at(size_t step, bool holder) const;
  std::filesystem::path path_of(size_t step) const;

  std::vector<Step> steps_;
  std::deque<std::string> rest_;
  bool trusted_;
  std::optional<std::string> problem_;  // the first on the way
  int links_ = 0;
  int reason_ = 0;
};

}  // namespace hexad
