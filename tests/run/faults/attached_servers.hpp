// Servers that a run is told of and does not start: what is killed stays away.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace faults {

class AttachedServers {
 public:
  // `model_option`: the program's for a model. `environment` is set beside this process's.
  AttachedServers(int count, const std::filesystem::path& program, const std::string& model_option,
                  const std::string& model_dir, const std::map<std::string, std::string>& environment);
  ~AttachedServers();  // kills them
  AttachedServers(const AttachedServers&) = delete;
  AttachedServers& operator=(const AttachedServers&) = delete;

  const std::vector<std::string>& urls() const { return urls_; }

 private:
  std::vector<std::string> urls_;
  std::vector<pid_t> pids_;
};

}  // namespace faults
