// A load's requests as the host hands them to a generator, and as bodies of HTTP.
#pragma once
#include <hexad/abi.h>

#include <string>
#include <vector>

#include "benchmarks/bridge_overhead/outcome.hpp"
#include "plugins/vllm_bridge/protocol/generation_api.hpp"

namespace hexad::bridge_overhead {

class Requests {
 public:
  explicit Requests(const Load& load) {
    prompts_.reserve(static_cast<size_t>(load.count));
    for (int64_t i = 0; i < load.count; ++i) {
      const uint64_t index = load.first + static_cast<uint64_t>(i);
      const std::vector<int32_t>& prompt = prompts_.emplace_back(prompt_of(index, load.shape));
      hexad_request& request = requests_.emplace_back();
      request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
      request.flags = HEXAD_REQUEST_IGNORE_EOS;
      request.id = request.seed = index;
      request.group = index / 16;
      request.prompt = prompt.data(), request.prompt_size = load.shape.prompt_tokens;
      request.max_new_tokens = load.shape.new_tokens;
      request.temperature = request.top_p = 1;
    }
    for (const hexad_request& request : requests_) pointers_.push_back(&request);
  }

  const std::vector<const hexad_request*>& pointers() const { return pointers_; }

  // What the bridge sends for them.
  std::vector<std::string> bodies() const {
    std::vector<std::string> bodies;
    for (const hexad_request& request : requests_) {
      const vllm::Request copy = bridge::copy_request(request);
      const std::string name = fmt::format("hexad-0123456789ab-{0}-{0}", request.id);
      bodies.push_back(
          vllm::body_of(vllm::GenerationApi::tokens, {copy, {}, {}, name, "hexad-0123456789ab-v0.0", true}));
    }
    return bodies;
  }

 private:
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<hexad_request> requests_;
  std::vector<const hexad_request*> pointers_;
};

}  // namespace hexad::bridge_overhead
