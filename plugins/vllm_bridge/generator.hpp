// The bridge to vLLM servers: plugins/server_bridge in the words of vllm::Dialect.
#pragma once
#include <memory>

#include "plugins/server_bridge/generator.hpp"
#include "plugins/vllm_bridge/dialect.hpp"
#include "plugins/vllm_bridge/settings.hpp"

namespace hexad::vllm {

class Generator : public bridge::Generator {
 public:
  Generator(const sdk::Call& call, const sdk::Config& config) : Generator(call, config, read_settings(call, config)) {}

 private:
  Generator(const sdk::Call& call, const sdk::Config& config, const Settings& s)
      : bridge::Generator(call, config, s.common,
                          std::make_unique<Dialect>(s.common.deadlines.control, s.refit_address, s.fp8)) {}
};

}  // namespace hexad::vllm
