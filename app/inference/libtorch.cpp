#include "app/inference/libtorch.hpp"

#include "lib/installation/home.hpp"
#include "lib/installation/wheel.hpp"

namespace hexad::inference {

void require_libtorch() {
  const std::filesystem::path home = installation::home(), runtime = home / "lib/libhexad_runtime.so";
  if (!std::filesystem::exists(runtime)) return;
  installation::require(runtime, installation::libtorch(), installation::sites(home, installation::libtorch()));
}

}  // namespace hexad::inference
