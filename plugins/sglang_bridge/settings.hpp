// policy.generation as this generator reads it. docs/config.md says what each key means.
#pragma once
#include "plugins/server_bridge/settings.hpp"
#include "plugins/sglang_bridge/dialect.hpp"

namespace hexad::sglang {

struct Settings {
  bridge::Settings common;
  DialectSettings dialect;
};

Settings read_settings(const sdk::Call& call, const sdk::Config& config);

}  // namespace hexad::sglang
