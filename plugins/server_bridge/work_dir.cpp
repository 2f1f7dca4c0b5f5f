#include "plugins/server_bridge/work_dir.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <hexad/services.hpp>
#include <system_error>

namespace hexad::bridge {

namespace fs = std::filesystem;

WorkDir::WorkDir(const std::string& parent, const std::string& program, const std::string& key) {
  const fs::path base = parent.empty() ? fs::temp_directory_path() : fs::absolute(parent);
  fs::create_directories(base);
  std::string pattern = (base / ("hexad-" + program + "-XXXXXX")).string();
  if (!::mkdtemp(pattern.data())) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "cannot make a folder for weights and logs in %s: wanted a folder that can be written, named by %s",
              base.c_str(), key.c_str());
  }
  path_ = pattern;
}

WorkDir::~WorkDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path WorkDir::weights(int64_t version) const { return path_ / fmt::format("version_{}", version); }

void WorkDir::keep(const fs::path& newest, const std::function<bool(const fs::path&)>& in_use) {
  std::erase(kept_, newest);
  kept_.push_back(newest);
  std::vector<fs::path> left;
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (i + 2 >= kept_.size() || in_use(kept_[i])) {
      left.push_back(kept_[i]);
      continue;
    }
    std::error_code ignored;
    fs::remove_all(kept_[i], ignored);
  }
  kept_ = std::move(left);
}

}  // namespace hexad::bridge
