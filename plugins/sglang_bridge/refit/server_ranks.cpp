#include "plugins/sglang_bridge/refit/server_ranks.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

int size_of(const Json& server, const char* name) {
  const Json value = server.value(name, Json(1));
  const int64_t ranks = value.is_number_integer() ? value.get<int64_t>() : 0;
  if (ranks < 1 || ranks > 65536)
    sdk::fail(HEXAD_UNAVAILABLE, "/server_info: %s: got %s, wanted a number of ranks", name, value.dump().c_str());
  return static_cast<int>(ranks);
}

}  // namespace

int ranks_of(bridge::Control& control, const bridge::Target& target, bool on_gpu, bridge::Seconds deadline) {
  const bridge::Answer answer = control.get(target, "/server_info", deadline);
  const Json server = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!answer.ok() || !server.is_object()) {
    sdk::fail(HEXAD_UNAVAILABLE, "/server_info: %s",
              answer.ok() ? answer.body.substr(0, 200).c_str() : answer.trouble().c_str());
  }
  for (const char* other : {"dp_size", "pp_size"}) {
    if (size_of(server, other) == 1) continue;
    sdk::fail(HEXAD_UNAVAILABLE,
              "its %s is %d: wanted 1, as SGLang's groups for weights have ranks of tensor parallelism alone. Set "
              "policy.generation.refit_transport to disk",
              other, size_of(server, other));
  }
  if (const Json device = server.value("device", Json("cuda")); on_gpu && device != "cuda") {
    sdk::fail(HEXAD_UNAVAILABLE,
              "its device is %s: wanted cuda, as these weights go from GPU to GPU. Set "
              "policy.generation.refit_transport to gloo or disk",
              device.is_string() ? device.get<std::string>().c_str() : device.dump().c_str());
  }
  return size_of(server, "tp_size");
}

}  // namespace hexad::sglang
