// The helpers of tests/config, with all that is known of other systems.
#pragma once
#include "compat/compat.hpp"
#include "tests/config/support.hpp"

namespace compat_test {

using config_test::check_says;
using config_test::Files;
using config_test::has_notice;
using config_test::kValid;
using config_test::message_of;
using config_test::Overrides;

inline std::string resolve_error(const Overrides& overrides, const std::string& text = kValid) {
  return config_test::resolve_error(overrides, text, hexad::compat::all());
}

inline hexad::config::Resolved resolve_text(const Overrides& overrides, const std::string& text = kValid) {
  return config_test::resolve_text(overrides, text, hexad::compat::all());
}

}  // namespace compat_test
