#include "plugins/vllm_bridge/refit/channel.hpp"

#include <sodium.h>

#include "plugins/vllm_bridge/refit/ipc/channel.hpp"
#include "plugins/vllm_bridge/refit/nccl/channel.hpp"

namespace hexad::vllm {

std::unique_ptr<Channel> make_channel(const std::string& backend, Control& control, const Settings& settings) {
  if (backend == "ipc") return std::make_unique<IpcChannel>(control, settings.deadlines.control);
  return std::make_unique<NcclChannel>(control, settings.deadlines.control, settings.refit_address);
}

std::string base64(std::string_view bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // its NUL
  return text;
}

}  // namespace hexad::vllm
