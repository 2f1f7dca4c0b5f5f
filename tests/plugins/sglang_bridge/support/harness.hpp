// The bridge to SGLang in this process, and fake servers to attach it to.
#pragma once
#include "plugins/sglang_bridge/generator.hpp"
#include "tests/plugins/server_bridge/support/harness.hpp"
#include "tests/plugins/sglang_bridge/support/fake_sglang.hpp"

namespace sglang_test {

using Harness = BridgeHarness<hexad::sglang::Generator, FakeSglang>;

}  // namespace sglang_test
