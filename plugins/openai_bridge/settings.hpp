// policy.generation as this generator reads it. docs/config.md says what each key means.
#pragma once
#include "plugins/openai_bridge/dialect.hpp"
#include "plugins/server_bridge/settings.hpp"

namespace hexad::openai {

struct Settings {
  bridge::Settings common;
  DialectSettings dialect;
};

Settings read_settings(const sdk::Config& config);

}  // namespace hexad::openai
