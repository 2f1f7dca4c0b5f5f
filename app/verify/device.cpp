#include "app/verify/device.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "app/verify/child.hpp"
#include "sdk/verify/cuda/device.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

// The name of the GPU, and why there is none.
std::pair<std::string, std::string> find_gpu() {
  const ChildResult child = run_in_child(
      [] {
        std::string why_not;
        const std::string name = verify::cuda_device_name(why_not);
        return json_text(Json{{"name", name}, {"why_not", why_not}});
      },
      {.gpu = true});
  const Json answer = try_parse_json<Json>(child.answer);
  if (!answer.is_object()) return {"", "looking for it " + child.problem};
  return {answer.at("name"), answer.at("why_not")};
}

}  // namespace

VerifyDevice::VerifyDevice(const std::string& wanted, const Manifest& manifest) {
  const auto takes = [&](const char* memory) {
    return std::find(manifest.memory.begin(), manifest.memory.end(), memory) != manifest.memory.end();
  };
  const bool loss = manifest.kind == Kind::loss, cuda = takes("cuda");
  host_ = !loss || takes("host");
  std::string name, why_not;
  if (wanted == "cuda" || (wanted == "auto" && loss && cuda)) std::tie(name, why_not) = find_gpu();
  if (wanted == "cuda" && name.empty()) {
    fail(ErrorKind::config, "--device cuda: there is no CUDA device: {}. Without one: --device cpu", why_not);
  }
  if (!loss) {
    why_not_ = "covers losses";
  } else if (!cuda) {
    why_not_ = "the loss takes host memory alone";
  } else if (wanted == "cpu") {
    why_not_ = "needs a CUDA device: --device cpu was given";
  } else if (name.empty()) {
    why_not_ = "needs a CUDA device: " + why_not;
  } else {
    name_ = name;
  }
}

std::string VerifyDevice::not_run(int level) const { return level == 7 || (level > 1 && !host_) ? why_not_ : ""; }

}  // namespace hexad::plugin
