// The bridge to OpenAI-compatible servers: plugins/server_bridge in the words of openai::Dialect. They keep the weights
// that they have: of an update nothing is sent, requests go on, and every token is of version 0.
#pragma once
#include <memory>

#include "plugins/openai_bridge/dialect.hpp"
#include "plugins/openai_bridge/settings.hpp"
#include "plugins/server_bridge/generator.hpp"

namespace hexad::openai {

class Generator : private bridge::Generator {
  using Base = bridge::Generator;

 public:
  Generator(const sdk::Call& call, const sdk::Config& config) : Generator(call, config, read_settings(config)) {}

  void describe(const sdk::Call& call, hexad_generator_info& info) {
    Base::describe(call, info);
    info.caps = HEXAD_GEN_UPDATE_INFLIGHT;
  }
  using Base::cancel;
  using Base::poll;
  using Base::release;
  using Base::submit;

  void update_begin(const sdk::Call&, int64_t) {}
  void update_bucket(const sdk::Call&, const hexad_weight_list&) {}
  void update_end(const sdk::Call&, bool) {}

 private:
  Generator(const sdk::Call& call, const sdk::Config& config, const Settings& s)
      : Base(call, config, s.common, std::make_unique<Dialect>(s.dialect)) {}
};

}  // namespace hexad::openai
