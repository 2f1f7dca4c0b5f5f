// Which levels run on a GPU, and why the others do not.
#pragma once
#include <string>

#include "core/manifest/manifest.hpp"

namespace hexad::plugin {

class VerifyDevice {
 public:
  // `wanted`: "auto", "cpu" or "cuda". Looks for a GPU in a process of its own. Throws Error(config) if "cuda" is
  // wanted and there is none.
  VerifyDevice(const std::string& wanted, const Manifest& manifest);

  // Why this level does not run; "" if it does.
  std::string not_run(int level) const;
  // Whether it runs on the GPU: level 7, and all that compute if the plugin takes no host memory.
  bool on_gpu(int level) const { return name_.size() && (level == 7 || (level > 1 && !host_)); }
  const std::string& name() const { return name_; }  // of the GPU; "" if none is used

 private:
  bool host_ = false;  // the plugin takes host memory
  std::string name_, why_not_;
};

}  // namespace hexad::plugin
