// The bridge to SGLang servers: plugins/server_bridge in the words of sglang::Dialect.
#pragma once
#include <memory>

#include "plugins/server_bridge/generator.hpp"
#include "plugins/sglang_bridge/dialect.hpp"
#include "plugins/sglang_bridge/settings.hpp"

namespace hexad::sglang {

class Generator : public bridge::Generator {
 public:
  Generator(const sdk::Call& call, const sdk::Config& config) : Generator(call, config, read_settings(call, config)) {}

 private:
  Generator(const sdk::Call& call, const sdk::Config& config, const Settings& s)
      : bridge::Generator(call, config, s.common, std::make_unique<Dialect>(s.dialect)) {}
};

}  // namespace hexad::sglang
