// The bridge to vLLM in this process, and fake servers to attach it to.
#pragma once
#include "plugins/vllm_bridge/generator.hpp"
#include "tests/plugins/server_bridge/support/harness.hpp"
#include "tests/plugins/vllm_bridge/support/fake_vllm.hpp"

namespace vllm_test {

using Harness = BridgeHarness<hexad::vllm::Generator, FakeVllm>;

}  // namespace vllm_test
